internal import InletCore
internal import InletLinux
package import SystemPackage

/// Why a watched folder is not watched.
package enum RootAbsence {
    /// What is wrong with a path that no watched folder is at, and what becomes of it.
    package static func reason(_ path: FilePath) -> String {
        obstacle(at: path) ?? "not there yet; watched as soon as it appears"
    }

    /// Whether something else is in its place, or it cannot be looked at: making the folder does not help then.
    package static func isBlocked(_ path: FilePath) -> Bool { obstacle(at: path) != nil }

    /// How such a folder stands: what is in its place needs a person, and what is not there may still come.
    static func state(_ path: FilePath) -> IntakeStatus.State { obstacle(at: path).map { .failing($0) } ?? .missing }

    /// Why what is at the path is not watched; nil where nothing is, or what can be.
    private static func obstacle(at path: FilePath) -> String? {
        do throws(SystemError) {
            switch try FileLook.look(at: path) {
            case .symlink:
                let target = DurableFile.target(ofLink: path).map { " to \($0.display)" } ?? ""
                return "a symlink\(target), which is not followed; name the folder that it leads to in 'path'"
            case .regular, .other: return "not a folder; watched as soon as one is there"
            case .directory where isBehindLink(path):
                return "a symlink of another user is on the way to it, which is not followed; "
                    + "name the folder itself in 'path'"
            case .directory:
                return pseudo(path).map {
                    "on \($0), whose files are answers of the kernel and no files to deliver; watch another folder"
                }
            case .missing: return nil
            }
        } catch {
            return "\(error)"
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
