import CLinux
import Glibc
package import SystemPackage

extension DurableFile {
    /// Gives a file another name on the same file system and never overwrites: `isTaken` when `target` exists,
    /// `EXDEV` when it is elsewhere. The rename is durable after `syncDirectory` of both folders. Blocks.
    package static func rename(_ path: FilePath, to target: FilePath) throws(SystemError) {
        do throws(SystemError) {
            _ = try SystemCall.result("rename", path, target: target) {
                path.withPlatformString { from in target.withPlatformString { inlet_rename_noreplace(from, $0) } }
            }
        } catch  where error.code == .invalidArgument || error.code == .noFunction {
            // The file system has no RENAME_NOREPLACE (NFS, older FUSE).
            try renameByLink(path, to: target)
        }
    }

    /// `link(2)` refuses an existing name, so that a link and an unlink are a rename that never overwrites. A crash in
    /// between leaves both names on one file.
    package static func renameByLink(_ path: FilePath, to target: FilePath) throws(SystemError) {
        do throws(SystemError) {
            _ = try SystemCall.result("rename", path, target: target) {
                path.withPlatformString { from in target.withPlatformString { link(from, $0) } }
            }
        } catch  where error.isLinkless {
            return try renameAfterLook(path, to: target)
        }
        do throws(SystemError) {
            try remove(path)
        } catch {
            // Then it has both names, and the caller the reason.
            try? remove(target)
            throw error
        }
    }

    /// For file systems without hard links (FAT, some FUSE): a name that appears after the look is overwritten.
    package static func renameAfterLook(_ path: FilePath, to target: FilePath) throws(SystemError) {
        guard case .missing = try FileLook.look(at: target) else {
            throw SystemError(call: "rename", path: path, target: target, code: .fileExists)
        }
        _ = try SystemCall.result("rename", path, target: target) {
            path.withPlatformString { from in target.withPlatformString { Glibc.rename(from, $0) } }
        }
    }
}

extension SystemError {
    /// How `link(2)` says that the file system, or the kind of file, has no hard links.
    fileprivate var isLinkless: Bool {
        code == .notPermitted || code == .notSupported || code == .noFunction || code == .invalidArgument
            || code == .tooManyLinks
    }
}
