internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Whether a file is missing because its whole root is: unplugged, unmounted, not mounted yet.
enum RootPresence {
    /// True when the root is no directory now, or an empty one that is on another device than the file was admitted from (the
    /// folder under a mount), or whose changes nobody tells of (a server that has lost its disk). Files that were sent singly
    /// have no root.
    static func isAway(_ file: FileRow) -> Bool {
        guard !file.root.isEmpty else { return false }
        guard case .directory(let identity)? = try? FileLook.look(at: file.root) else { return true }
        // Where others' symlinks lead is not the root, and its files have not gone from there.
        if RootAbsence.isBehindLink(file.root) { return true }
        guard isEmpty(file.root) else { return false }
        return identity.device != file.identity.device || (try? FileSystemKind.of(file.root).isNetwork) == true
    }

    private static func isEmpty(_ directory: FilePath) -> Bool {
        // What cannot be listed counts as empty: its files wait, instead of being gone.
        guard var stream = try? DirectoryStream(directory) else { return true }
        // As above.
        return ((try? stream.next()) ?? nil) == nil
    }
}
