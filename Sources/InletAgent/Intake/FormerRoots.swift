internal import Foundation
internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Where files of watched folders are archived that have left the configuration: what was admitted before goes on as it
/// would have, also after a restart. Kept in `state_dir/roots.json`, written only when it changes.
struct FormerRoots: Sendable {
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

        init(_ root: WatchSettings) {
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
            guard let pattern = try? RootPattern(root.path) else { return nil }
            root.pattern = pattern
            return root
        }
    }

    init(stateDirectory: FilePath) { file = stateDirectory.appending("roots.json") }

    /// Those that are not watched any more. Blocks.
    func beside(_ watch: [WatchSettings]) -> [WatchSettings] {
        let names = Set(watch.map(\.path))
        return stored().compactMap(\.settings).filter { !names.contains($0.path) }
    }

    /// Writes down what is watched from now on, the newest first, and behind it what was. Blocks.
    ///
    /// - Returns: what was.
    func remember(_ watch: [WatchSettings], former: [WatchSettings]) throws(SystemError) -> [WatchSettings] {
        let names = Set(watch.map(\.path))
        var seen: Set<FilePath> = []
        let left = former.filter { !names.contains($0.path) && seen.insert($0.path).inserted }.prefix(Self.most)
        let entries = (watch + left).map { Entry($0) }
        if entries != stored(), let text = try? JSONEncoder().encode(entries) {
            try DurableFile.write(Array(text), to: file, mode: 0o600)
        }
        return Array(left)
    }

    private func stored() -> [Entry] {
        guard let text = try? DurableFile.read(file, limit: 4 << 20) else { return [] }
        return (try? JSONDecoder().decode([Entry].self, from: Data(text))) ?? []
    }
}
