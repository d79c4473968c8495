internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Looks whether a watched folder is the one that it was, before anything of it is believed.
struct RootCaution: Sendable {
    let root: FilePath
    let journal: Journal
    let states: RootStates

    /// By what the folder is recognised now. Blocks.
    static func mark(of root: FilePath) throws(SystemError) -> RootMark? {
        guard case .directory = try FileLook.look(at: root) else { return nil }
        return RootMark(volume: try VolumeFinder().identity(of: root))
    }

    /// Why the folder is not to be watched now; nil when it is as it should be, which is remembered.
    func objection() async throws -> String? {
        guard let now = try Self.mark(of: root) else { return nil }
        let before = try await journal.mark(of: root)
        if before != now {
            let holdsFiles = try await journal.holdsFiles(of: root)
            let verdict = RootGuard.judge(before: before, now: now, isEmpty: isEmpty, holdsFiles: holdsFiles)
            if case .pause(let why) = verdict {
                states.set(.guarded, root)
                return why
            }
            try await journal.setMark(now, of: root, at: .now)
        }
        states.set(.present(volume: nil), root)
        return nil
    }

    /// Whether nothing is in it but what is never a user's, such as our own folder.
    private var isEmpty: Bool {
        guard var names = try? DirectoryStream(root) else { return true }
        let ignore = IgnoreList()
        while let entry = try? names.next() {
            let path = FilePath(root: nil, [entry.name])
            if !ignore.ignores(path, isDirectory: entry.kind == .directory), entry.name.string != "lost+found" {
                return false
            }
        }
        return true
    }
}
