import Glibc
package import SystemPackage

extension DurableFile {
    /// Makes a symbolic link at `path` that leads to `target`; `isTaken` when something is there. Not durable. Blocks.
    package static func makeLink(_ path: FilePath, to target: FilePath) throws(SystemError) {
        _ = try SystemCall.result("symlink", path, target: target) {
            target.withPlatformString { target in path.withPlatformString { symlink(target, $0) } }
        }
    }
}
