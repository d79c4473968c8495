package import InletCore
internal import InletLinux
internal import SystemPackage

/// Whether fanotify can be had, for `inlet check`: it is tried, as by this user now.
package enum FanotifyCheck {
    /// Why a root that asks for `mode: fanotify` would be watched by inotify; nil when it would not. A root that is not there
    /// has nothing against it but what all have.
    package static func refusal(_ watch: WatchSettings) -> String? {
        guard watch.recursive else { return oneFolder }
        do throws(SystemError) {
            var marks = try FanotifyMounts(root: watch.path, ignore: IgnoreList())
            // What is wrong with the folder itself is said by the check of folders.
            guard case .directory? = try? FileLook.look(at: watch.path), let folder = try? Folder(watch.path) else {
                return nil
            }
            return switch try marks.coverage(of: "", folder) {
            case .refused(let reason): reason
            case .remote: "other machines' changes are not reported"
            case .marked, .newlyMarked, .unmarked: nil
            }
        } catch {
            return "\(error)"
        }
    }

    static let oneFolder = "recursive: false needs one watch only"
}
