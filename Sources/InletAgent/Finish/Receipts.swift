internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// The evidence of a file's fate, for people and programs.
struct Receipt: Sendable {
    /// One JSON object on one line.
    let json: [UInt8]
    /// The receipt in a file.
    var line: [UInt8] { json + [UInt8(ascii: "\n")] }

    /// - Parameters:
    ///   - version: Inlet's version, for a receipt that leaves the journal, and maybe this machine.
    ///   - written: the place of the receipt as a file; nil is the journal only.
    ///   - note: why it is there and not at the route's place.
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
        object.add("deliveries", job.deliveries.map { Self.object($0, of: file) })
        if let written { object.add("receipt_file", written.display) }
        if let note { object.add("receipt_note", note) }
        if let version {
            object.add("inlet", version)
            object.add("host", ProcessSetup.hostName)
        }
        json = object.finished
    }

    /// For the journal: a file whose source stays, and whose receipt is in the journal alone, needs no finisher. For work
    /// of a share the fleet says who finishes it.
    static let atOnce: EndingRule = { job in
        if job.file.policy.isOfPlace { return nil }
        guard FinishAction(job.file) == .keep, job.file.policy.receipts == .none else { return nil }
        let receipt = Receipt(job, state: job.file.state, disposition: Disposition.kept, finishedAt: .now)
        return (Disposition.kept, receipt.json)
    }

    /// Fields of some files only.
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

    private static func object(_ delivery: DeliveryRow, of file: FileRow) -> JSONLine {
        let key = delivery.proof?.key ?? delivery.key ?? ""
        var object = JSONLine()
        object.add("destination", delivery.destination)
        object.add("state", delivery.state.rawValue)
        object.add("key", key)
        let name = FileName(file.path).bytes
        if !key.isEmpty, FileName(FilePath(key: key)).bytes.suffix(name.count) != name[...] {
            object.add("original_name", DisplayText.escape(name))
        }
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

/// Routes may ask for receipts as files. They are written before the journal finishes the file, so that a crash in
/// between writes the same one again, under the same name.
extension FinishingStage {
    /// The place of receipts that are not beside their files.
    private var receiptFolder: FilePath { shared.settings.settings.stateDirectory.appending("receipts") }

    /// Writes the receipt of a finished source where its route wants it. If it cannot be beside the file, it goes below
    /// the state directory, with the reason. Blocks.
    ///
    /// - Parameters:
    ///   - place: the source's present place; nil where it is gone or replaced.
    ///   - mayWrite: whether the agent may write there.
    /// - Throws: a `SystemError` when even that folder fails.
    func writeReceipt(
        _ job: Job, state: FileState, disposition: String, place: FilePath?, mayWrite: Bool, at now: WallTime
    ) throws -> Receipt {
        let receipt = { [version] (path: FilePath?, note: String?) in
            Receipt(
                job, state: state, disposition: disposition, finishedAt: now, version: path == nil ? nil : version,
                written: path, note: note)
        }
        let file = job.file
        switch file.policy.receipts {
        case .none: return receipt(nil, nil)
        case .folder: return try writeInFolder(file) { receipt($0, nil) }
        case .sidecar: break
        }
        var note = "the source is gone, or was replaced"
        do {
            let isGone = state == .superseded || state == .gone
            if let place, !isGone, let written = try writeBeside(file, place, mayWrite, { receipt($0, nil) }) {
                return written
            }
            tell(file, note, isGone: true)
        } catch {
            note = "\(error)"
            tell(file, note, isGone: false)
        }
        return try writeInFolder(file) { receipt($0, note) }
    }

    /// Below the state directory.
    private func writeInFolder(_ file: FileRow, _ receipt: (FilePath) -> Receipt) throws -> Receipt {
        let path = receiptFolder.pushing(Receipt.pathInFolder(file))
        try DurableFile.makeDirectories(path.removingLastComponent(), mode: 0o750, asFolderOwner: true)
        let receipt = receipt(path)
        try DurableFile.write(receipt.line, to: path, mode: 0o600)
        return receipt
    }

    /// Once per watched folder, and once more where its sources go away by themselves.
    private func tell(_ file: FileRow, _ reason: String, isGone: Bool) {
        guard toldOfReceipts.withLock({ $0[isGone, default: []].insert(file.root).inserted }) else { return }
        shared.log.emit(.receiptElsewhere(root: file.root, folder: receiptFolder, reason: reason))
    }

    // MARK: - Beside the file

    /// - Returns: nil where the source is gone, or was replaced.
    private func writeBeside(
        _ file: FileRow, _ place: FilePath, _ mayWrite: Bool, _ receipt: (FilePath) -> Receipt
    ) throws -> Receipt? {
        guard mayWrite else { throw Refusal("Inlet does not write to removable volumes (volume_writes)") }
        guard let name = Receipt.path(beside: place)?.lastComponent else {
            throw Refusal("the file's name is too long")
        }
        guard let source = try find(place, of: file),
            try source.look().identity?.isKnown(as: file.identity) == true
        else { return nil }
        let beside = source.beside(name)
        switch try beside.look() {
        case .missing, .regular: break
        default: throw Refusal("\(beside.path.display) exists and is not a regular file")
        }
        let receipt = receipt(beside.path)
        try beside.folder.write(receipt.line, to: name, mode: 0o640, asFolderOwner: true)
        if place != file.fullPath { removeEarlier(file) }
        return receipt
    }

    /// No folder between the watched one and the receipt may be a symlink: a writer there could choose which file the
    /// agent, with more rights, replaces. A file that a person named to 'send' may be anywhere.
    private func find(_ place: FilePath, of file: FileRow) throws(SystemError) -> OpenName? {
        do throws(SystemError) {
            return try OpenName(place, below: file.root)
        } catch {
            if error.isMissing, !error.isLinked { return nil }
            throw error
        }
    }

    /// A file that was kept after a failure, and sent again, has its first receipt at its old place.
    private func removeEarlier(_ file: FileRow) {
        guard let path = Receipt.path(beside: file.fullPath) else { return }
        do throws(SystemError) {
            let receipt = try OpenName(path, below: file.root)
            let text = try receipt.folder.read(receipt.name, limit: 4 << 20)
            if text.starts(with: "{\"job\":\(file.id),".utf8) { try receipt.remove() }
        } catch {
            // Its remains are a true receipt of the first end; the second one names its own place.
        }
    }
}

/// The names of receipts.
extension Receipt {
    /// The suffix of every receipt beside a file; such names are never admitted.
    static let suffix = IgnoreList.receiptSuffix
    private static let longestName = 255

    /// nil when the name would be longer than file systems allow.
    static func path(beside path: FilePath) -> FilePath? {
        guard let name = path.lastComponent else { return nil }
        let bytes = FilePath(root: nil, [name]).bytes + suffix.utf8
        return bytes.count > longestName ? nil : path.removingLastComponent().pushing(FilePath(bytes: bytes))
    }

    /// `2026/11/22/17-clip.mp4.json`. By the day of admission (UTC), which no retry and no crash changes: there is one
    /// per job.
    static func pathInFolder(_ file: FileRow) -> FilePath {
        let day = file.admittedAt.rfc3339.prefix(10).replacing("-", with: "/")
        let name = safe(file.path.lastComponent.map { FilePath(root: nil, [$0]).bytes } ?? [])
        return FilePath("\(day)/\(file.id)-\(name).json")
    }

    /// A name for any system and any shell: ASCII letters, digits, `.`, `-` and `_`.
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
