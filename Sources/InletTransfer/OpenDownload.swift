import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// A running download: its part-file, which nobody else can write, and the description of its content.
package final class OpenDownload: Sendable {
    package let download: Download
    let part: PartFile
    /// The target's.
    let name: FilePath.Component

    /// `startsAgain` is set when the last answer did not fit our bytes.
    private let state: Mutex<(tag: DownloadTag, position: Int64, startsAgain: Bool)>
    private let boot: String?

    /// Opens or creates the part-file and determines where to continue. Blocks.
    ///
    /// - Throws: `.destinationExists` when a file at the target must stay, `.conflict` while another process fetches
    ///   it; `.destinationUnwritable`.
    init(_ download: Download) throws(TransferError) {
        self.download = download
        do throws(SystemError) {
            let place = try download.place()
            if !download.isReplacing, try place.folder.look(place.name) != .missing {
                throw SystemError(call: "rename", path: download.target, code: .fileExists)
            }
            guard let part = try PartFile(place.part, in: place.folder) else {
                throw SystemError(call: "flock", path: download.partPath, code: .resourceTemporarilyUnavailable)
            }
            self.part = part
            name = place.name
            boot = ProcessSetup.bootID()
            let tag = DownloadTag(part.note()) ?? DownloadTag()
            let size = try part.size
            let position = tag.trusted(of: size, boot: boot)
            if position < size { try part.truncate(to: position) }
            state = Mutex((position > 0 ? tag : DownloadTag(), position, false))
        } catch {
            throw TransferError(writing: error, target: download.target)
        }
    }

    /// Bytes that are in the part-file.
    package var position: Int64 { state.withLock { $0.position } }

    /// Fields that the request must have, to be signed where fields are: none, or `Range` and `If-Range`.
    package var headers: HTTPFields { state.withLock { $0.tag.fields(from: $0.position) } }

    /// Whether nothing is left to ask for.
    package var isWhole: Bool { position > 0 && position == state.withLock({ $0.tag.length }) }

    /// Checksums that the content must have.
    var wanted: [Digest] { state.withLock { $0.tag.digests } + (download.digest.map { [$0] } ?? []) }

    /// The server's media type.
    var type: String? { state.withLock { $0.tag.type } }

    /// Whether the last answer did not fit our bytes.
    var startsAgain: Bool { state.withLock { $0.startsAgain } }

    /// Whether the file's end can be distinguished from a cut connection.
    var endIsKnown: Bool {
        state.withLock { state in state.tag.length.map { $0 == state.position } ?? true }
    }

    func prepare() { state.withLock { $0.startsAgain = false } }

    /// Drops all bytes. Blocks.
    func clear() throws(TransferError) {
        do throws(SystemError) {
            part.removeNote()
            try part.truncate(to: 0)
        } catch {
            throw TransferError(writing: error, target: download.target)
        }
        state.withLock { ($0.tag, $0.position) = (DownloadTag(), 0) }
    }

    /// Removes an empty part-file. Blocks.
    func removeIfEmpty() {
        // The next download of the same object finds a leftover, and continues or drops it.
        if position == 0 { try? part.remove() }
    }

    /// Makes the bytes survive a power cut, so that another boot can continue. Blocks.
    func secure() {
        let (tag, position) = state.withLock { ($0.tag, $0.position) }
        guard position > 0, tag.validator != nil else { return }
        var secured = tag
        (secured.synced, secured.boot) = (position, boot)
        do throws(SystemError) {
            try part.synchronize()
            state.withLock { $0.tag = secured }
            try part.setNote(secured.note)
        } catch {
            // No note records bytes that cannot be synced: another boot fetches them again.
            return
        }
    }
}

// MARK: - The answer

extension OpenDownload {
    /// As `ResponseSink` has it.
    func begins(_ head: HTTPResponse) throws(TransferError) -> Bool {
        let (tag, offset) = state.withLock { ($0.tag, $0.position) }
        switch tag.judge(head, offset: offset) {
        case .refused: return false
        case .startAgain:
            state.withLock { $0.startsAgain = true }
            throw TransferError(
                .badAnswer, "\(download.target.display): the server's bytes differ from the local ones",
                isOutage: false)
        case .rest(let total):
            state.withLock { $0.tag.length = total }
            return true
        case .whole:
            let tag = DownloadTag(head, tagIsMD5: download.tagIsMD5)
            try beginAnew(tag, isChunked: head.header("Transfer-Encoding") != nil)
            return true
        }
    }

    /// As `ResponseSink` has it.
    func take(_ piece: UnsafeRawBufferPointer) throws(TransferError) {
        let (place, total) = state.withLock { ($0.position, $0.tag.length) }
        let end = place + Int64(piece.count)
        let most = min(download.limit, total ?? .max)
        guard end <= most else { throw tooLarge("more than \(most) bytes came") }
        do throws(SystemError) {
            try part.write(piece, at: place)
        } catch {
            throw TransferError(writing: error, target: download.target)
        }
        state.withLock { $0.position = end }
        download.progress(end, total)
    }

    private func beginAnew(_ tag: DownloadTag, isChunked: Bool) throws(TransferError) {
        if let length = tag.length, length > download.limit { throw tooLarge("it has \(length) bytes") }
        guard tag.length != nil || isChunked else {
            throw TransferError(
                .badAnswer,
                "\(download.target.display): the answer has no length, so a truncated answer would go unnoticed",
                isOutage: false)
        }
        try clear()
        var noted = tag
        noted.boot = boot
        do throws(SystemError) {
            if tag.validator != nil { try part.setNote(noted.note) }
        } catch {
            throw TransferError(writing: error, target: download.target)
        }
        state.withLock { $0.tag = noted }
    }

    private func tooLarge(_ why: String) -> TransferError {
        TransferError(
            .answerTooLarge, "\(download.target.display): \(why), the limit is \(download.limit)", isOutage: false)
    }
}

extension TransferError {
    /// A file that could not be written.
    init(writing error: SystemError, target: FilePath) {
        if error.isTaken {
            self.init(.destinationExists, "\(target.display) exists; Inlet does not overwrite it", isOutage: false)
        } else if error.code == .resourceTemporarilyUnavailable {
            self.init(.conflict, "\(target.display) is already being fetched by another process", isOutage: false)
        } else {
            self.init(error.isFull ? .destinationFull : .destinationUnwritable, "\(error)", isOutage: false)
        }
    }
}
