package import InletCore
package import InletLinux
package import SystemPackage

/// The archive folders of watched folders that left the configuration, and the folders in which the agent moved or
/// removed files. Files that were admitted before continue under their rules, also after a restart. Kept in
/// `state_dir/roots.json`, written only on changes.
package struct FormerRoots: Sendable {
    /// State that an agent needs beside its configuration: formerly watched folders, and watched folders whose files
    /// under way are moved or removed later, whatever the present routes say.
    package typealias Former = (roots: [WatchSettings], changed: Set<FilePath>)

    private let file: FilePath
    /// Older ones are dropped: their files go to the default archive.
    static let most = 64

    private struct Entry: Codable, Equatable {
        var path: [UInt8]
        var archive: [UInt8]
        var quarantine: [UInt8]
        var holdMilliseconds: Int64
        var isPattern: Bool
        var mayWrite: Bool
        /// Older lists do not say; then the present routes decide.
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
            // It was a pattern when it was written; a pattern that this version refuses is an unknown folder.
            guard let pattern = try? RootPattern(root.path) else { return nil }
            root.pattern = pattern
            return root
        }
    }

    package init(stateDirectory: FilePath) { file = stateDirectory.appending(Self.fileName) }

    static let fileName: FilePath.Component = "roots.json"

    /// The watched folders before the present list. Blocks.
    ///
    /// - Throws: when the file cannot be read now. Its content still counts.
    package func beside(_ watch: [WatchSettings]) throws(SystemError) -> Former {
        let names = Set(watch.map(\.path))
        let entries = try stored()
        return (entries.compactMap(\.settings).filter { !names.contains($0.path) }, Self.changed(entries))
    }

    private static func changed(_ entries: [Entry]) -> Set<FilePath> {
        Set(entries.filter { $0.isChanged ?? false }.map { FilePath(bytes: $0.path) })
    }

    /// Writes the present watched folders, newest first, and then the former ones. Blocks.
    ///
    /// - Parameter isOwed: whether files may be under way by rules that no longer apply.
    /// - Returns: the former ones.
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
        // A damaged file has no former folders; their files stay.
        return JSON.note(text) ?? []
    }
}
