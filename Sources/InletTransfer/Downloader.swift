import InletCore
package import InletLinux
import Synchronization
import SystemPackage

/// Fetches files: streamed into a part-file, continued after a break or a restart, checked, synced and renamed.
///
/// One request at a time. The caller makes each, because it may need a signature or a fresh URL: `open`, then `fetch`
/// until it returns nil, then `finish`.
package struct Downloader: Sendable {
    private let client: HTTPClient
    private let pool: BlockingPool

    /// - Parameter pool: where files are opened, synced and hashed.
    package init(client: HTTPClient, pool: BlockingPool) {
        self.client = client
        self.pool = pool
    }

    /// - Throws: `.destinationExists`, `.conflict` while another process fetches the same, `.destinationUnwritable`.
    package func open(_ download: Download) async throws(TransferError) -> OpenDownload {
        try await pool.run { () throws(TransferError) in try OpenDownload(download) }
    }

    /// Sends a GET with `open.headers` among its fields and writes the answer. Bytes that arrived before an error stay
    /// for the next request.
    ///
    /// Its only time limits are the request's `stallTimeout`, and that some bytes arrive every few minutes (`Pace`).
    ///
    /// - Returns: nil when all bytes are in the part-file; otherwise an answer that is neither the file nor a part of
    ///   it, such as an error.
    /// - Throws: as `HTTPClient.send`; `.answerTooLarge`, `.destinationFull`, `.destinationUnwritable`. `.badAnswer`
    ///   for an answer without a length, and where the server's bytes differ from ours or cannot be compared. Ours were
    ///   dropped then, and the next request is for all of it.
    package func fetch(_ open: OpenDownload, _ request: HTTPRequest) async throws(TransferError) -> HTTPResponse? {
        if open.isWhole { return nil }
        var request = request
        request.answerDeadline = .seconds(365 * 86_400)
        open.prepare()
        let response: HTTPResponse
        do throws(TransferError) {
            let gate = DownloadSink(open)
            defer { gate.close() }
            response = try await client.send(request, into: gate)
        } catch {
            guard open.startsAgain else {
                await pool.run { open.secure() }
                throw error
            }
            try await pool.run { () throws(TransferError) in try open.clear() }
            throw TransferError(
                .badAnswer, "\(request.url.redacted) has changed on the server; Inlet fetches it again", isOutage: false
            )
        }
        guard response.status == 200 || response.status == 206 && open.position > 0 else { return response }
        guard open.endIsKnown else {
            await pool.run { open.secure() }
            throw TransferError(
                .connectionLost, "\(request.label): its answer ended after \(open.position) bytes", isOutage: false)
        }
        return nil
    }

    /// Checks the fetched file and gives it its name; on disk when this returns.
    ///
    /// - Throws: `.corrupted` when a checksum differs, `.badAnswer` when `Download.objection` rejects it: then nothing
    ///   is kept. Also `.destinationExists`, `.destinationFull`, `.destinationUnwritable`; `.cancelled`.
    package func finish(_ open: OpenDownload) async throws(TransferError) -> Downloaded {
        try await pool.run { () throws(TransferError) in
            let download = open.download
            let (size, sums) = try Self.sums(open)
            for digest in open.wanted where sums[digest.algorithm] != digest {
                try open.clear()
                throw TransferError(
                    .corrupted,
                    "\(download.target.display): its \(digest.algorithm.rawValue) is "
                        + "\(sums[digest.algorithm]?.hex ?? "unknown"), not \(digest.hex); Inlet discards it",
                    isOutage: false)
            }
            try Self.check(open)
            do throws(SystemError) {
                try open.part.publish(as: open.name, mode: 0o644, replacing: download.isReplacing)
            } catch {
                throw TransferError(writing: error, target: download.target)
            }
            return (download.target, size, sums[.sha256] ?? Digest(.sha256, []), open.wanted)
        }
    }

    /// Ends a failed download: an empty part-file goes, anything else stays for the next time.
    package func tidy(_ open: OpenDownload) async {
        await pool.run { open.removeIfEmpty() }
    }

    /// Removes the remains of an earlier download; succeeds when there are none, or another process is downloading.
    package func discard(_ download: Download) async throws(TransferError) {
        try await pool.run { () throws(TransferError) in
            do throws(SystemError) {
                let place = try download.place()
                guard try place.folder.look(place.part) != .missing else { return }
                try PartFile(place.part, in: place.folder)?.remove()
            } catch  where error.isMissing {
                return
            } catch {
                throw TransferError(writing: error, target: download.target)
            }
        }
    }

    /// Whether it is the wanted file, as far as its beginning tells.
    private static func check(_ open: OpenDownload) throws(TransferError) {
        guard let objection = open.download.objection else { return }
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try open.part.source().content(of: Download.headBytes)
        } catch {
            throw TransferError(writing: error, target: open.download.target)
        }
        guard let reason = objection((bytes, open.type, isProved: !open.wanted.isEmpty)) else { return }
        try open.clear()
        throw TransferError(
            .badAnswer, "\(open.download.target.display): \(reason); Inlet discards it", isOutage: false)
    }

    private static func sums(_ open: OpenDownload) throws(TransferError) -> (Int64, SliceSums) {
        let source: SourceFile
        do throws(SystemError) {
            source = try open.part.source()
        } catch {
            throw TransferError(writing: error, target: open.download.target)
        }
        var hasher = SliceHasher(Set(open.wanted.map(\.algorithm)).union([.sha256]))
        let size = open.position
        try Checksum.readAll(source, offset: 0, length: size) { hasher.update($0) }
        return (size, hasher.finish())
    }
}

/// Passes an answer to its download while that wants it: the transfer's thread may hold its sink a moment longer, and
/// must not hold the part-file's lock with it.
private final class DownloadSink: ResponseSink {
    private let open: Mutex<OpenDownload?>

    init(_ open: OpenDownload) { self.open = Mutex(open) }

    func close() { open.withLock { $0 = nil } }

    func begins(_ head: HTTPResponse) throws(TransferError) -> Bool {
        try open.withLock { $0 }?.begins(head) ?? false
    }

    func take(_ piece: UnsafeRawBufferPointer) throws(TransferError) {
        try open.withLock { $0 }?.take(piece)
    }
}
