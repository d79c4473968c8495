internal import FoundationEssentials
internal import InletCore
package import InletLinux
internal import Synchronization
package import SystemPackage

/// The marker of a share, `.inlet/place`: a UUID, by which all agents tell whether they see the same folder.
package enum PlaceMarker: Sendable, Equatable {
    /// The folder of the share is not there.
    case away
    /// The folder is there without a marker: perhaps nothing is mounted.
    case missing
    case found(String)
    /// It cannot be read, or is no UUID; the reason.
    case unreadable(String)

    private static let name: FilePath.Component = "place"
    private static let longest = 128

    /// Its path in a share.
    package static func path(in root: FilePath) -> FilePath { root.pushing(WatchLock.folder).appending(name) }

    /// Follows no symlink. Blocks as long as a server does not answer.
    package static func read(in root: FilePath) -> Self {
        do throws(SystemError) {
            let folder: Folder
            do throws(SystemError) { folder = try Folder(root) } catch  where error.isMissing { return .away }
            let bytes = try folder.folder(WatchLock.folder).read(name, limit: longest)
            return marker(of: bytes).map { .found($0) } ?? .unreadable("it holds no UUID")
        } catch  where error.isMissing {
            return .missing
        } catch {
            return .unreadable("\(error)")
        }
    }

    /// nil for a text that is no UUID.
    static func marker(of bytes: [UInt8]) -> String? {
        let words = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard words.count == 1, let word = words.first else { return nil }
        return UUID(uuidString: String(word))?.uuidString.lowercased()
    }

    /// Why no agent makes the first marker there: it may be the folder under a mount that is missing, which is empty, or
    /// named by fstab(5). nil where nothing says so. Blocks.
    package static func doubt(about root: FilePath, in layout: FileSystemLayout) -> String? {
        let real = layout.resolve(root) ?? root
        if let point = layout.missing(at: root) ?? layout.missing(at: real) {
            return "it has no marker yet, and nothing is mounted at \(point.display), which /etc/fstab names; mount it"
        }
        guard RootCheck.isEmpty(root), layout.mounts.mount(of: real)?.point != real,
            FileSystemKind.known(of: root)?.isNetwork != true
        else { return nil }
        return
            "it has no marker yet, is empty, and nothing is mounted there; mount the share, or put its first file there"
    }

    /// Makes the file, whole or not at all, and never replaces one: `isTaken` where there is one. Blocks.
    package static func make(_ marker: String, in root: FilePath) throws(SystemError) {
        let folder = try Folder(root).folder(WatchLock.folder, making: 0o755, asFolderOwner: true)
        try folder.create(Array("\(marker)\n".utf8), as: name, mode: 0o644)
    }

    // MARK: - For people

    /// Why nothing of a share may be touched, and the remedy; nil where it has the right marker.
    ///
    /// - Parameter expected: the marker that the fleet, or the journal, has; nil where nobody knows.
    package func trouble(in root: FilePath, expected: String?) -> String? {
        let file = Self.path(in: root).display
        switch self {
        case .away: return "\(root.display) is not there; mount it"
        case .unreadable(let why): return "its marker \(file) cannot be read (\(why))"
        case .missing:
            guard let expected else { return nil }
            return
                "it has no marker (\(file)), so it is perhaps not mounted; mount it, or, where it is the right folder, "
                + "write the marker again: echo \(expected) > \(file)"
        case .found(let marker):
            guard let expected, expected != marker else { return nil }
            return
                "place_differs: \(file) holds \(marker), and the fleet's share has \(expected); mount the right folder, "
                + "or give this one another 'place'"
        }
    }
}

/// Reads and makes markers on threads of their own, one at a time for each share: a server that does not answer holds up
/// nobody.
final class MarkerThreads: Sendable {
    private let busy = Mutex<Set<FilePath>>([])

    private static let patience = Duration.seconds(5)
    static let silence = "it does not answer within \(DurationText.format(patience))"

    /// - Returns: nil without an answer in time. Blocks at most for so long.
    func read(in root: FilePath) -> PlaceMarker? {
        do throws(SystemError) {
            return try result(root) { () throws(SystemError) in PlaceMarker.read(in: root) }
        } catch {
            return .unreadable("\(error)")
        }
    }

    /// As `PlaceMarker.doubt`; a reason without an answer in time, too. Blocks at most for so long.
    func doubt(about root: FilePath) -> String? {
        do throws(SystemError) {
            let answer = try result(root) { () throws(SystemError) -> String? in
                PlaceMarker.doubt(about: root, in: try FileSystemLayout.current())
            }
            guard let answer else { return Self.silence }
            return answer
        } catch {
            return "\(error)"
        }
    }

    /// Makes a marker; as `PlaceMarker.make`.
    ///
    /// - Returns: false without an answer in time; it may be made later.
    func make(_ marker: String, in root: FilePath) throws(SystemError) -> Bool {
        try result(root) { () throws(SystemError) in
            try PlaceMarker.make(marker, in: root)
            return true
        } ?? false
    }

    /// The result of `body`; nil without an answer in time, or while the call before has not ended. Blocks.
    func result<Value: Sendable>(
        _ root: FilePath, _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) throws(SystemError) -> Value? {
        // The call before has not ended yet.
        guard busy.withLock({ $0.insert(root).inserted }) else { return nil }
        let outcome: Result<Value, SystemError>?
        do throws(SystemError) {
            outcome = try LoopThread.result(name: "place", within: Self.patience) {
                [self] () throws(SystemError) -> Result<Value, SystemError> in
                defer { ended(root) }
                return Result { () throws(SystemError) in try body() }
            }
        } catch {
            // No thread began, so that nobody else says so.
            ended(root)
            throw error
        }
        return try outcome?.get()
    }

    private func ended(_ root: FilePath) { busy.withLock { _ = $0.remove(root) } }
}
