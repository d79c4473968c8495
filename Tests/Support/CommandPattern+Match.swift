import CHost
import Glibc
package import InletCore

extension CommandPattern {
    /// Whether `arguments` are this command, by the helper's own code.
    package func matches(_ arguments: [String]) -> Bool {
        let lists = [words, arguments].map { list in list.map { strdup($0) } }
        defer { for text in lists.joined() { free(text) } }
        let pointers = lists.map { list in list.map { UnsafePointer($0) } + [nil] }
        return inlet_host_matches(pointers[0], place, pointers[1])
    }
}
