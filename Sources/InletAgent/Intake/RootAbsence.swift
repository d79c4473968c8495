internal import InletLinux
package import SystemPackage

/// Why a watched folder is not watched.
package enum RootAbsence {
    /// What is wrong with a path that no folder is at, and what becomes of it.
    package static func reason(_ path: FilePath) -> String {
        switch try? FileLook.look(at: path) {
        case .symlink?:
            "a symlink, which is not followed; name the folder that it leads to in 'path'"
        case .regular?, .other?: "not a folder; watched as soon as one is there"
        case .directory? where isBehindLink(path):
            "a symlink of another user is on the way to it, which is not followed; name the folder itself in 'path'"
        case .directory? where pseudo(path) != nil:
            "on \(pseudo(path) ?? ""), whose files are answers of the kernel and no files to deliver; watch another folder"
        case .missing?, .directory?, nil: "not there yet; watched as soon as it appears"
        }
    }

    /// Whether a folder is there that can be watched.
    static func isThere(_ path: FilePath) -> Bool {
        guard case .directory? = try? FileLook.look(at: path) else { return false }
        return !isBehindLink(path) && pseudo(path) == nil
    }

    /// The name of the file system that it is on, where that is the kernel's own (proc, sysfs, cgroup…).
    package static func pseudo(_ path: FilePath) -> String? {
        guard let kind = try? FileSystemKind.of(path), kind.isPseudo else { return nil }
        return kind.name
    }

    /// Whether a symlink leads there that somebody else than root or our own user has made.
    static func isBehindLink(_ path: FilePath) -> Bool {
        do throws(SystemError) {
            _ = try Folder(path)
            return false
        } catch {
            return error.isLinked
        }
    }
}
