internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Sends one slice of a file to a presigned URL until the store has proved it, with five tries.
struct PartSender: Sendable {
    let api: SpiralAPI
    let source: SourceFile
    let order: DeliveryOrder
    let attempt: Attempt
    /// Where MD5s are computed, beside the socket's thread.
    let hashing: BlockingPool

    static let tries = 5
    /// Waits between tries; a Retry-After beyond `longestWait` ends the attempt instead of holding a worker.
    private static let waits = RetryPolicy(backoff: .milliseconds(200), maxBackoff: .seconds(5))
    private static let longestWait = Duration.seconds(10)

    /// - Parameters:
    ///   - what: names the slice in errors, e.g. `part 3 of 12`.
    ///   - headers: those that the URL was signed for.
    ///   - md5: of the slice, where it is known already; otherwise it is computed while sending.
    func send(
        _ range: Range<Int64>, to url: HTTPURL, what: String, headers: HTTPFields = [], md5 known: Digest? = nil
    ) async throws(DeliveryError) -> UploadRecord.ProvedPart {
        var judge = ETagJudge()
        var failed = 0
        while true {
            do throws(DeliveryError) {
                let (etag, md5) = try await put(range, url, what, headers, known)
                let judgement = judge.judge(etag, md5: md5)
                if judgement == .proved { return UploadRecord.ProvedPart(etag: etag, md5: md5?.hex) }
                attempt.meter.add(range.lowerBound - range.upperBound)
                // A file that is being written to explains other bytes better than damage does.
                try SourceGuard.check(source, order)
                if judgement == .corrupted { throw Self.corrupted(what, url) }
                if judgement == .notMD5 { throw Self.notMD5(what, url) }
            } catch {
                failed += 1
                try await pause(after: failed, error)
            }
        }
    }

    /// Sends the slice and hashes it at the same time: the two readers share the page cache.
    private func put(
        _ range: Range<Int64>, _ url: HTTPURL, _ what: String, _ headers: HTTPFields, _ known: Digest?
    ) async throws(DeliveryError) -> (etag: String, md5: Digest?) {
        let length = range.upperBound - range.lowerBound
        source.adviseSequential(offset: range.lowerBound, length: length)
        let request = HTTPRequest(
            "PUT", url, headers: headers,
            body: .slice(source, offset: range.lowerBound, length: length), answerDeadline: .seconds(120))
        // A send that fails ends the scope, and with it the hashing.
        async let hashed = hash(range, known)
        let answer = try await api.send(request, meter: attempt.meter)
        guard (200..<300).contains(answer.status) else { throw refusal(answer, url, what) }
        guard let etag = answer.header("ETag"), !ETagJudge.bare(etag).isEmpty else {
            attempt.meter.add(-length)
            throw DeliveryError(
                .retry(after: nil), .missingETag,
                "\(what): \(url.redacted) answered \(answer.status) without an ETag")
        }
        return (etag, try await hashed.get())
    }

    /// Whether the store may hold what a failed PUT of the whole file sent. An empty body leaves no trace in the meter.
    var mayHaveArrived: Bool { attempt.meter.hasStarted || order.source.size == 0 }

    /// The MD5 of a slice, unless it is known; nil where nobody asks for it (`verify: size`).
    func hash(_ range: Range<Int64>, _ known: Digest? = nil) async -> Result<Digest?, DeliveryError> {
        guard known == nil, api.settings.verify == .md5 else { return .success(known) }
        do {
            let length = range.upperBound - range.lowerBound
            return .success(
                try await Checksum.md5(of: source, offset: range.lowerBound, length: length, on: hashing))
        } catch {
            return .failure(DeliveryError(error))
        }
    }

    /// A 403 of a presigned URL is about the URL: expired by its answer or by its own account, which is taken as a yes when
    /// it gives none, or refused.
    private func refusal(_ answer: HTTPResponse, _ url: HTTPURL, _ what: String) -> DeliveryError {
        let said = String(decoding: answer.body.prefix(2000), as: UTF8.self).lowercased()
        if answer.status == 403, PresignedLife.hasExpired(url, now: .now) ?? true || said.contains("expired") {
            return DeliveryError(.retry(after: nil), .urlExpired, "\(what): its upload URL has expired")
        }
        if answer.status == 404 || said.contains("nosuchupload") {
            return DeliveryError(.retry(after: nil), .uploadGone, "\(what): the store no longer knows this upload")
        }
        return DeliveryError(answer, "\(what) to \(url.redacted)", secretsMatter: false, now: .now)
    }

    /// Waits before the next try, or throws what ends the attempt.
    private func pause(after failed: Int, _ error: DeliveryError) async throws(DeliveryError) {
        let asked: Duration?
        switch error.verdict {
        case .retry(let after), .outage(let after): asked = after
        case .sourceChanged:
            // To the reader of an open file a removal looks like a change; the guard knows better.
            try SourceGuard.check(source, order)
            throw error
        default: throw error
        }
        if attempt.isStopping() { throw .stopping }
        let isFinal: Set<ErrorCode> = [.urlExpired, .uploadGone, .corrupted]
        guard failed < Self.tries, !isFinal.contains(error.code), asked ?? .zero <= Self.longestWait else {
            throw error
        }
        var random = SystemRandomNumberGenerator()
        do {
            try await Task.sleep(for: Self.waits.delay(afterAttempt: failed, asked: asked, using: &random))
        } catch {
            throw DeliveryError(.cancelled, .cancelled, "cancelled while waiting to send again")
        }
        try SourceGuard.check(source, order)
    }

    private static func corrupted(_ what: String, _ url: HTTPURL) -> DeliveryError {
        DeliveryError(
            .retry(after: nil), .corrupted,
            "\(what): \(url.redacted) holds other bytes than were sent, twice; the network or the store is damaging data"
        )
    }

    private static func notMD5(_ what: String, _ url: HTTPURL) -> DeliveryError {
        DeliveryError(
            .giveUp, .foreignETag,
            "\(what): this store's ETag is not MD5 (\(url.redacted)); set 'verify: size' on this destination")
    }
}
