import Foundation
import Glibc
package import SystemPackage

/// Rings `Happening` when a file that somebody else writes has grown: the output of a program, for one.
package enum FileNews {
    /// One for the whole process, of which a user has few; -1 where there is none: then `eventually` looks by itself.
    private static let descriptor: CInt = {
        let made = inotify_init1(CInt(IN_CLOEXEC))
        guard made >= 0 else { return made }
        Thread.detachNewThread {
            var bytes = [UInt8](repeating: 0, count: 16 << 10)
            while read(made, &bytes, bytes.count) > 0 { Happening.ring() }
        }
        return made
    }()

    /// From now on, until the file goes. - Returns: what `forget` takes: the agents under test share the watches of a user.
    package static func follow(_ file: FilePath) -> CInt {
        inotify_add_watch(descriptor, file.string, UInt32(IN_MODIFY))
    }

    package static func forget(_ watch: CInt) { inotify_rm_watch(descriptor, watch) }
}
