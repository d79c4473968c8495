import Glibc
import InletCore
package import SystemPackage

extension DurableFile {
    /// Makes a symbolic link at `path` that leads to `target`; `isTaken` when something is there. Not durable. Blocks.
    package static func makeLink(_ path: FilePath, to target: FilePath) throws(SystemError) {
        _ = try SystemCall.result("symlink", path, target: target) {
            target.withPlatformString { target in path.withPlatformString { symlink(target, $0) } }
        }
    }

    /// Where the symbolic link at `path` leads, as it says so; nil where that cannot be read. Blocks.
    package static func target(ofLink path: FilePath) -> FilePath? {
        var text = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = path.withPlatformString { readlink($0, &text, Int(PATH_MAX)) }
        return length < 0 ? nil : FilePath(bytes: text.prefix(length).map(UInt8.init(bitPattern:)))
    }
}
