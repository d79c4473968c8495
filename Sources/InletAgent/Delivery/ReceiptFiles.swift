internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Writes receipts as files, for routes that ask for them: before the journal says that the file is finished, so that a
/// crash in between writes the same one again, under the same name.
final class ReceiptFiles: Sendable {
    /// How a file went out, and where it is now.
    struct End: Sendable {
        var job: Job
        var state: FileState
        var disposition: String
        /// Where the source is; nil where it is gone, or another file.
        var place: FilePath?
        /// Whether anything may be written there.
        var mayWrite = true
    }

    /// `receipts` of the state directory.
    private let folder: FilePath
    private let origin: Receipt.Origin
    private let log: EventLog
    /// The roots of which it was said that their receipts are elsewhere.
    private let told = Mutex<Set<Told>>([])

    init(stateDirectory: FilePath, origin: Receipt.Origin, log: EventLog) {
        folder = stateDirectory.appending("receipts")
        self.origin = origin
        self.log = log
    }

    /// The receipt of a file whose source is done with, written where its route wants it. Where it cannot be beside the
    /// file, it is below the state directory and says why. Blocks.
    ///
    /// - Throws: a `SystemError` when not even that folder takes it.
    func write(_ end: End, at now: WallTime) throws -> Receipt {
        switch end.job.file.policy.receipts {
        case .none: return receipt(end, now, nil, nil)
        case .folder: return try writeInFolder(end, now, nil)
        case .sidecar: break
        }
        do {
            return try writeBeside(end, now)
        } catch {
            tell(end.job.file, error)
            return try writeInFolder(end, now, "\(error)")
        }
    }

    private func receipt(_ end: End, _ now: WallTime, _ file: FilePath?, _ note: String?) -> Receipt {
        Receipt(
            end.job, state: end.state, disposition: end.disposition, finishedAt: now,
            origin: file == nil ? nil : origin, written: file, note: note)
    }

    // MARK: - Below the state directory

    private func writeInFolder(_ end: End, _ now: WallTime, _ note: String?) throws -> Receipt {
        let path = folder.pushing(ReceiptName.inFolder(end.job.file))
        try DurableFile.makeDirectories(path.removingLastComponent(), mode: 0o750, asFolderOwner: true)
        let receipt = receipt(end, now, path, note)
        try DurableFile.write(receipt.line, to: path, mode: 0o600)
        return receipt
    }

    /// Why a receipt is not beside its file.
    private enum Elsewhere: Error, CustomStringConvertible {
        case sourceIsGone
        case inTheWay(String)

        var description: String {
            switch self {
            case .sourceIsGone: "the source is not there any more, or another file is"
            case .inTheWay(let what): what
            }
        }
    }

    /// Once for each watched folder, and once more where its sources go by themselves.
    private func tell(_ file: FileRow, _ error: any Error) {
        let isGone = if case .sourceIsGone = error as? Elsewhere { true } else { false }
        guard told.withLock({ $0.insert(Told(root: file.root, isGone: isGone)).inserted }) else { return }
        log.emit(.receiptElsewhere(root: file.root, folder: folder, reason: "\(error)"))
    }

    private struct Told: Hashable {
        var root: FilePath
        var isGone: Bool
    }

    // MARK: - Beside the file

    private func writeBeside(_ end: End, _ now: WallTime) throws -> Receipt {
        let file = end.job.file
        guard let place = end.place, end.state != .superseded, end.state != .gone else {
            throw Elsewhere.sourceIsGone
        }
        guard end.mayWrite else { throw Elsewhere.inTheWay("nothing is written to removable volumes (volume_writes)") }
        guard let name = ReceiptName.beside(place)?.lastComponent else {
            throw Elsewhere.inTheWay("the file's name is too long")
        }
        let source = try open(place, of: file)
        guard try source.look().identity?.isKnown(as: file.identity) == true else { throw Elsewhere.sourceIsGone }
        let beside = source.beside(name)
        switch try beside.look() {
        case .missing, .regular: break
        default: throw Elsewhere.inTheWay("\(beside.path.display) is there, and is no regular file")
        }
        let receipt = receipt(end, now, beside.path, nil)
        try beside.folder.write(receipt.line, to: name, mode: 0o640, asFolderOwner: true)
        if place != file.fullPath { removeEarlier(file) }
        return receipt
    }

    /// No folder between the watched one and the receipt may be a symlink: whoever may write there would decide what the
    /// agent, which may do more, replaces. What a person has named to 'send' may be anywhere.
    private func open(_ place: FilePath, of file: FileRow) throws -> OpenName {
        do {
            return try OpenName(place, below: file.root)
        } catch {
            if error.isLinked { throw Elsewhere.inTheWay("\(error)") }
            if error.isMissing { throw Elsewhere.sourceIsGone }
            throw error
        }
    }

    /// A file that was kept after it had failed, and was sent again, has left its first receipt at its old place.
    private func removeEarlier(_ file: FileRow) {
        // What is left of it is a true receipt of the first end; the second one says its own place.
        guard let path = ReceiptName.beside(file.fullPath), let receipt = try? OpenName(path, below: file.root),
            let text = try? receipt.folder.read(receipt.name, limit: 4 << 20),
            text.starts(with: "{\"job\":\(file.id),".utf8)
        else { return }
        // As above.
        try? receipt.remove()
    }
}

/// What receipts are called.
enum ReceiptName {
    /// The end of the name of every receipt beside a file; on the list of names that are never taken in.
    static let suffix = IgnoreList.receiptSuffix
    private static let longest = 255

    /// nil when the name would be longer than file systems allow.
    static func beside(_ path: FilePath) -> FilePath? {
        guard let name = path.lastComponent else { return nil }
        let bytes = FilePath(root: nil, [name]).bytes + suffix.utf8
        return bytes.count > longest ? nil : path.removingLastComponent().pushing(FilePath(bytes: bytes))
    }

    /// `2026/11/22/17-clip.mp4.json`. By the day of admission (UTC), which no retry and no crash changes: there is one for
    /// each job.
    static func inFolder(_ file: FileRow) -> FilePath {
        let day = file.admittedAt.rfc3339.prefix(10).replacing("-", with: "/")
        let name = safe(file.path.lastComponent.map { FilePath(root: nil, [$0]).bytes } ?? [])
        return FilePath("\(day)/\(file.id)-\(name).json")
    }

    /// A name that any system and any shell takes: ASCII letters, digits, `.`, `-` and `_`.
    static func safe(_ name: [UInt8]) -> String {
        let bytes = name.prefix(100).map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
                byte
            default: UInt8(ascii: "_")
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Receipt {
    /// As a file holds it.
    var line: [UInt8] { json + [UInt8(ascii: "\n")] }
}
