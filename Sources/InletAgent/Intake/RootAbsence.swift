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
        case .missing?, .directory?, nil: "not there yet; watched as soon as it appears"
        }
    }
}
