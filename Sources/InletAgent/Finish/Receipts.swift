internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// What a person or a program can keep as evidence of what became of a file.
struct Receipt: Sendable {
    /// One JSON object on one line.
    let json: [UInt8]
    /// As a file holds it.
    var line: [UInt8] { json + [UInt8(ascii: "\n")] }

    /// - Parameters:
    ///   - version: Inlet's, for one that leaves the journal, and maybe this machine.
    ///   - written: where the receipt is as a file; nil = only in the journal.
    ///   - note: why it is there and not where the route asks for it.
    init(
        _ job: Job, state: FileState, disposition: String, finishedAt: WallTime, version: String? = nil,
        written: FilePath? = nil, note: String? = nil
    ) {
        let file = job.file
        var object = JSONLine()
        object.add("job", file.id)
        object.add("path", file.fullPath.display)
        object.add("size", file.identity.size)
        object.add("state", state.rawValue)
        object.add("route", file.route ?? "")
        object.add("disposition", disposition)
        object.add("modified_at", WallTime(nanoseconds: file.identity.modified).rfc3339)
        object.add("admitted_at", file.admittedAt.rfc3339)
        object.add("finished_at", finishedAt.rfc3339)
        object.add("media_type", file.mediaType)
        Self.add(whatIsKnownOf: file, to: &object)
        if let reason = file.reason {
            if let code = file.code { object.add("code", code.rawValue) }
            object.add("reason", reason)
        }
        object.add("deliveries", job.deliveries.map(Self.object))
        if let written { object.add("receipt_file", written.display) }
        if let note { object.add("receipt_note", note) }
        if let version {
            object.add("inlet", version)
            object.add("host", ProcessSetup.hostName)
        }
        json = object.finished
    }

    /// For the journal: a file whose source stays as it is, and whose receipt is in the journal alone, needs no finisher.
    static let atOnce: EndingRule = { job in
        guard FinishAction(job.file) == .keep, job.file.policy.receipts == .none else { return nil }
        let receipt = Receipt(job, state: job.file.state, disposition: Disposition.kept, finishedAt: .now)
        return (Disposition.kept, receipt.json)
    }

    /// What not every file has.
    private static func add(whatIsKnownOf file: FileRow, to object: inout JSONLine) {
        if let category = file.category { object.add("category", category) }
        if let role = file.role { object.add("role", role) }
        if let batch = file.batchID { object.add("batch", batch) }
        if !file.labels.isEmpty { object.add("labels", list(file.labels)) }
        if !file.digests.isEmpty {
            var digests = JSONLine()
            for digest in file.digests { digests.add(digest.algorithm.rawValue, digest.hex) }
            object.add("digests", digests)
        }
    }

    private static func list(_ texts: [String: String]) -> JSONLine {
        var list = JSONLine()
        for (name, value) in texts.sorted(by: { $0.key < $1.key }) { list.add(name, value) }
        return list
    }

    private static func object(_ delivery: DeliveryRow) -> JSONLine {
        var object = JSONLine()
        object.add("destination", delivery.destination)
        object.add("state", delivery.state.rawValue)
        object.add("key", delivery.proof?.key ?? delivery.key ?? "")
        object.add("attempts", Int64(delivery.attempts))
        if let started = delivery.startedAt { object.add("started_at", started.rfc3339) }
        if let ended = delivery.endedAt { object.add("ended_at", ended.rfc3339) }
        if let proof = delivery.proof { add(proof, to: &object) }
        if let code = delivery.code { object.add("code", code.rawValue) }
        if let reason = delivery.reason { object.add("reason", reason) }
        return object
    }

    private static func add(_ proof: Proof, to object: inout JSONLine) {
        object.add("size", proof.size)
        object.add("verified", proof.method.rawValue)
        if let content = proof.content { object.add("digest", content.digest.description) }
        if let size = proof.content?.partSize { object.add("part_size", size) }
        if let etag = proof.etag { object.add("etag", etag) }
        if let url = proof.url { object.add("url", url) }
        guard let details = proof.details, !details.isEmpty else { return }
        object.add("details", list(details))
    }
}

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
    private let version: String
    private let log: EventLog
    /// The roots of which it was said that their receipts are elsewhere, and apart those whose sources were gone.
    private let told = Mutex<[Bool: Set<FilePath>]>([:])

    init(stateDirectory: FilePath, version: String, log: EventLog) {
        (folder, self.version, self.log) = (stateDirectory.appending("receipts"), version, log)
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
            version: file == nil ? nil : version, written: file, note: note)
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
    private enum ReceiptFallbackReason: Error, CustomStringConvertible {
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
        let isGone = if case .sourceIsGone = error as? ReceiptFallbackReason { true } else { false }
        guard told.withLock({ $0[isGone, default: []].insert(file.root).inserted }) else { return }
        log.emit(.receiptElsewhere(root: file.root, folder: folder, reason: "\(error)"))
    }

    // MARK: - Beside the file

    private func writeBeside(_ end: End, _ now: WallTime) throws -> Receipt {
        let file = end.job.file
        guard let place = end.place, end.state != .superseded, end.state != .gone else {
            throw ReceiptFallbackReason.sourceIsGone
        }
        guard end.mayWrite else {
            throw ReceiptFallbackReason.inTheWay("nothing is written to removable volumes (volume_writes)")
        }
        guard let name = ReceiptName.beside(place)?.lastComponent else {
            throw ReceiptFallbackReason.inTheWay("the file's name is too long")
        }
        let source = try open(place, of: file)
        guard try source.look().identity?.isKnown(as: file.identity) == true else {
            throw ReceiptFallbackReason.sourceIsGone
        }
        let beside = source.beside(name)
        switch try beside.look() {
        case .missing, .regular: break
        default: throw ReceiptFallbackReason.inTheWay("\(beside.path.display) is there, and is no regular file")
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
            if error.isLinked { throw ReceiptFallbackReason.inTheWay("\(error)") }
            if error.isMissing { throw ReceiptFallbackReason.sourceIsGone }
            throw error
        }
    }

    /// A file that was kept after it had failed, and was sent again, has left its first receipt at its old place.
    private func removeEarlier(_ file: FileRow) {
        guard let path = ReceiptName.beside(file.fullPath) else { return }
        do throws(SystemError) {
            let receipt = try OpenName(path, below: file.root)
            let text = try receipt.folder.read(receipt.name, limit: 4 << 20)
            if text.starts(with: "{\"job\":\(file.id),".utf8) { try receipt.remove() }
        } catch {
            // What is left of it is a true receipt of the first end; the second one says its own place.
        }
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
