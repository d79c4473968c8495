internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Sends a video to its presigned URL, whole, in one request.
struct VOPIUpload: Sendable {
    let api: VOPIAPI
    let client: HTTPClient
    /// Where the MD5 is computed, beside the socket's thread.
    let hashing: BlockingPool
    let source: SourceFile
    let order: DeliveryOrder
    let attempt: Attempt

    /// What the same request again cannot get over.
    private static let isFinal: Set<ErrorCode> = [.urlExpired, .redirected, .notFound]

    /// - Throws: `.urlExpired` when another URL is needed; `.sourceChanged`, `.sourceGone`; `.corrupted`.
    func send(to upload: VOPIRecord.Upload) async throws(DeliveryError) -> VOPIRecord.Sent {
        // The URL may be of an earlier run.
        try await DeliveryError.onTransfer(await client.acquaint(with: api.settings.url))
        let url = try await DeliveryError.onTransfer(HTTPURL(upload.url, rules: api.settings.linkRules))
        var failed = 0
        while true {
            do throws(DeliveryError) {
                let sent = try await put(url, upload.contentType)
                // What was sent may be a mixture of two contents.
                try SourceGuard.check(source, order)
                return sent
            } catch {
                failed += 1
                try await Retrying.pauseSending(after: failed, error, attempt, final: Self.isFinal) {
                    () throws(DeliveryError) in try SourceGuard.check(source, order)
                }
            }
        }
    }

    private func put(_ url: HTTPURL, _ contentType: String) async throws(DeliveryError) -> VOPIRecord.Sent {
        let size = order.source.size
        let request = HTTPRequest(
            "PUT", url, headers: [("Content-Type", contentType)], body: .slice(source, offset: 0, length: size),
            answerDeadline: .seconds(120), stallTimeout: api.settings.noProgress)
        // A send that fails ends the scope, and with it the hashing.
        async let hashed = md5()
        let answer: HTTPResponse
        do throws(TransferError) {
            answer = try await client.send(request, meter: attempt.meter)
        } catch {
            var failure = DeliveryError(error)
            failure.reason = "sending \(DisplayText.escape(FileName(source.path).bytes)): \(failure.reason)"
            throw failure
        }
        guard (200..<300).contains(answer.status) else { throw Self.refusal(answer, url) }
        let md5 = try await hashed.get()
        guard let etag = answer.header("ETag").map({ ETagJudge.bare($0) }), !etag.isEmpty else {
            return VOPIRecord.Sent(md5: md5.hex, etag: nil, isProved: false)
        }
        // Tags of encrypted objects look the same and are no MD5 (S3, "Common response headers").
        let isEncrypted = answer.header("x-amz-server-side-encryption")?.hasPrefix("aws:kms") ?? false
        guard etag != md5.hex, Digest(.md5, hex: etag)?.bytes.count == 16, !isEncrypted else {
            return VOPIRecord.Sent(md5: md5.hex, etag: etag, isProved: etag == md5.hex)
        }
        attempt.meter.add(-size)
        try SourceGuard.check(source, order)
        throw DeliveryError(
            .retry(after: nil), .corrupted,
            "\(url.redacted) holds other bytes (MD5 \(etag)) than were sent (\(md5.hex)); the network or the store is "
                + "damaging data")
    }

    private func md5() async -> Result<Digest, DeliveryError> {
        await Result(
            of: try await DeliveryError.onTransfer(
                await Checksum.md5(of: source, offset: 0, length: order.source.size, on: hashing)))
    }

    /// A 403 of a presigned URL is about the URL, or about a clock.
    static func refusal(_ answer: HTTPResponse, _ url: HTTPURL) -> DeliveryError {
        guard answer.status == 403 else {
            return .ofStore(answer, "sending to \(url.redacted)")
        }
        let said = DeliveryError.said(answer)
        let skew = answer.date.map { abs(($0 - .now).milliseconds) > 300_000 } ?? false
        return DeliveryError(
            .retry(after: nil), .urlExpired,
            "\(url.redacted) refused the upload (403 \(said))" + (skew ? "; check this machine's clock" : ""),
            heard: Heard(403, AnswerForm.xml.isOwn(answer) ? .refusal : .foreign))
    }
}
