package import InletCore
package import InletLinux
package import SystemPackage

/// Where files of watched folders are archived that have left the configuration, and in which folders the agent moved or
/// removed files: what was admitted before goes on as it would have, also after a restart. Kept in `state_dir/roots.json`,
/// written only when it changes.
package struct FormerRoots: Sendable {
    /// What an agent needs beside its configuration: what is not watched any more, and which of the watched folders have files that
    /// may be under way and are to be moved or removed, whatever the routes say now.
    package typealias Former = (roots: [WatchSettings], changed: Set<FilePath>)

    private let file: FilePath
    /// Older ones are forgotten: their files would be archived in the usual place.
    static let most = 64

    private struct Entry: Codable, Equatable {
        var path: [UInt8]
        var archive: [UInt8]
        var quarantine: [UInt8]
        var holdMilliseconds: Int64
        var isPattern: Bool
        var mayWrite: Bool
        /// Lists of before do not say; then the routes of now decide.
        var isChanged: Bool?

        init(_ root: WatchSettings, isChanged: Bool) {
            self.isChanged = isChanged
            path = Array(root.path.bytes)
            archive = Array(root.archiveDirectory.bytes)
            quarantine = Array(root.quarantineDirectory.bytes)
            holdMilliseconds = root.hold.milliseconds
            isPattern = root.pattern != nil
            mayWrite = root.volumeWrites
        }

        var settings: WatchSettings? {
            var root = WatchSettings(
                path: FilePath(bytes: path), archiveDirectory: FilePath(bytes: archive),
                quarantineDirectory: FilePath(bytes: quarantine), hold: .milliseconds(holdMilliseconds))
            root.volumeWrites = mayWrite
            guard isPattern else { return root }
            // It was a pattern when it was written down; one that this version refuses is a folder that nobody knows.
            guard let pattern = try? RootPattern(root.path) else { return nil }
            root.pattern = pattern
            return root
        }
    }

    package init(stateDirectory: FilePath) { file = stateDirectory.appending(Self.fileName) }

    static let fileName: FilePath.Component = "roots.json"

    /// What was there before this list of watched folders. Blocks.
    ///
    /// - Throws: when what was written down cannot be read now. What it says is not forgotten for that.
    package func beside(_ watch: [WatchSettings]) throws(SystemError) -> Former {
        let names = Set(watch.map(\.path))
        let entries = try stored()
        return (entries.compactMap(\.settings).filter { !names.contains($0.path) }, Self.changed(entries))
    }

    private static func changed(_ entries: [Entry]) -> Set<FilePath> {
        Set(entries.filter { $0.isChanged ?? false }.map { FilePath(bytes: $0.path) })
    }

    /// Writes down what is watched from now on, the newest first, and behind it what was. Blocks.
    ///
    /// - Parameter isOwed: whether files may be under way by rules that do not hold any more.
    /// - Returns: what was.
    func remember(
        _ settings: Settings, former: [WatchSettings], isOwed: Bool
    ) throws(SystemError) -> [WatchSettings] {
        let names = Set(settings.watch.map(\.path))
        var seen: Set<FilePath> = []
        let left = former.filter { !names.contains($0.path) && seen.insert($0.path).inserted }.prefix(Self.most)
        let known = try stored()
        let changed = isOwed ? Self.changed(known) : []
        let changes = settings.changesSources
        let entries = (settings.watch + left).map { Entry($0, isChanged: changes || changed.contains($0.path)) }
        if entries != known { try DurableFile.write(JSON.note(of: entries), to: file, mode: 0o600) }
        return Array(left)
    }

    private func stored() throws(SystemError) -> [Entry] {
        let text: [UInt8]
        do throws(SystemError) {
            text = try DurableFile.read(file, limit: 4 << 20)
        } catch  where error.isMissing {
            return []
        }
        // What is damaged says nothing of former folders; their files are kept where they are.
        return JSON.note(text) ?? []
    }
}
