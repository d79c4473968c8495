internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Multipart uploads through the Spiral Storage API: every part has a presigned URL.
struct SpiralStore: PartStore {
    let api: SpiralAPI

    var limits: PartLimits {
        PartLimits(
            partSize: api.settings.partSize, largestPart: api.settings.largestPart, mostParts: PartPlan.mostParts,
            parallel: api.settings.parallelParts, largestObject: Self.largestObject)
    }

    /// As many parts as we ask for, each as long as R2 takes it ("Limits": 4.995 GiB).
    static let largestObject = PartPlan.mostParts * ((5 << 30) - (5 << 20))

    func open(_ order: DeliveryOrder, _ plan: PartPlan) async throws(DeliveryError) -> OpenUpload {
        let upload = try await api.create(order, count: plan.count)
        do throws(DeliveryError) {
            for url in upload.partURLs { _ = try api.checked(url) }
        } catch {
            // What stays ends by itself at the store; the error at hand is the one that is told.
            try? await api.abort(id: upload.id, key: upload.key)
            throw error
        }
        return upload
    }

    /// What is noted as proved is there as long as the upload is; only URLs that are still needed can have expired.
    func resume(_ record: UploadRecord, _ sender: PartSender) async throws(DeliveryError) -> UploadRecord? {
        guard record.upload.partURLs.count == record.plan.count else { return nil }
        try await DeliveryError.onTransfer(await api.client.acquaint(with: api.settings.api))
        let hasExpired = record.missing.contains { number in
            // One that is refused now is asked for anew.
            guard let url = try? api.checked(record.upload.partURLs[number - 1]) else { return true }
            return PresignedLife.hasExpired(url, now: .now) ?? false
        }
        return hasExpired ? nil : record
    }

    func target(_ number: Int, of upload: OpenUpload) throws(DeliveryError) -> any SliceTarget {
        PresignedTarget(url: try api.checked(upload.partURLs[number - 1]), headers: [])
    }

    func complete(_ record: UploadRecord) async throws(DeliveryError) -> Composed {
        let raw = (1...record.plan.count).map { record.parts[$0]?.etag ?? "" }
        do throws(DeliveryError) {
            return Composed(url: try await api.complete(record.upload, etags: raw.map { ETagJudge.bare($0) }))
        } catch {
            // Some stores want the tags exactly as they sent them.
            guard error.code == .badRequest, raw.contains(where: { $0.contains("\"") }) else { throw error }
            return Composed(url: try await api.complete(record.upload, etags: raw))
        }
    }

    func composed(_ record: UploadRecord, _ sender: PartSender?) async throws(DeliveryError) -> Composed? {
        guard let found = try await api.find(record.upload.key),
            found.matches(size: record.plan.fileSize, expectedETag: record.expectedETag)
        else { return nil }
        return Composed(url: nil, etag: found.etag.map { ETagJudge.bare($0) })
    }

    func abort(id: String, key: String) async throws(DeliveryError) { try await api.abort(id: id, key: key) }

    func location(_ key: String, answered: String?) -> String? { api.publicLocation(key, answered: answered) }
}

struct PresignedTarget: SliceTarget {
    let url: HTTPURL
    /// Those that the URL was signed for.
    let headers: HTTPFields

    var address: String { url.redacted }

    func request(_ body: HTTPBody, _ sums: SliceSums) throws(DeliveryError) -> HTTPRequest {
        HTTPRequest("PUT", url, headers: headers, body: body, answerDeadline: .seconds(120))
    }

    /// A 403 of a presigned URL is about the URL: expired by its answer or by its own account, which is taken as a yes when
    /// it gives none, or refused.
    func refusal(_ answer: HTTPResponse, _ what: String) -> DeliveryError {
        let said = String(decoding: answer.body.prefix(2000), as: UTF8.self).lowercased()
        let isPage = answer.isPage || answer.isHostsOwn
        // What the store says, and what of it may be everybody's: keys that were withdrawn refuse every URL.
        let heard = Heard(answer.status, isPage ? .foreign : .refusal)
        let isExpired = PresignedLife.hasExpired(url, now: .now)
        if answer.status == 403, isExpired ?? !isPage || said.contains("expired") {
            return DeliveryError(.retry(after: nil), .urlExpired, "\(what): its upload URL has expired", heard: heard)
        }
        if answer.status == 404 && !isPage || said.contains("nosuchupload") {
            let text = "\(what): the store no longer knows this upload"
            return DeliveryError(.retry(after: nil), .uploadGone, text, heard: heard)
        }
        if answer.status == 503, said.contains("slowdown") {
            let after = answer.retryAfter(now: .now)
            return DeliveryError(.outage(after: after), .throttled, "\(what): the store asks for fewer requests")
        }
        return .ofStore(answer, "\(what) to \(url.redacted)")
    }
}

/// A presigned URL's own account of its life (AWS Signature Version 4, query parameters).
enum PresignedLife {
    /// Whether the URL has expired by our clock; nil when it does not say.
    static func hasExpired(_ url: HTTPURL, now: WallTime) -> Bool? {
        guard let date = url.queryItem("X-Amz-Date"), let life = url.queryItem("X-Amz-Expires").flatMap(Int64.init),
            let signed = time(date)
        else { return nil }
        return signed + .seconds(life) <= now
    }

    /// Parses `20261121T072000Z`.
    static func time(_ text: String) -> WallTime? {
        guard text.utf8.count == 16 else { return nil }
        var long = Array(text.utf8)
        for (place, mark) in [(4, "-"), (7, "-"), (13, ":"), (16, ":")] {
            long.insert(contentsOf: mark.utf8, at: place)
        }
        return WallTime(rfc3339: String(decoding: long, as: UTF8.self))
    }
}

/// An object that is there: its length, and its tag where the store says one.
struct FoundObject: Sendable, Equatable {
    var size: Int64
    var etag: String?

    /// Whether it is what was sent: by its length, and by its tag where both sides have R2's kind.
    func matches(size: Int64, expectedETag: String?) -> Bool {
        guard self.size == size else { return false }
        guard let expectedETag, let etag else { return true }
        let bare = ETagJudge.bare(etag)
        let isComposite = bare.contains("-") || bare.count == 32
        return !isComposite || bare == expectedETag
    }
}

extension SpiralAPI {
    /// Finds out whether an object is already there, after an answer was lost: by `objects/url` (dialect v1), or the configured
    /// `public_url`; nil where there is none, and where this destination offers no way to tell.
    func find(_ key: String) async throws(DeliveryError) -> FoundObject? {
        var url = settings.publicURL?.appending(path: key)
        if settings.dialect == .v1 {
            // An address that may not be asked tells nothing.
            url = try await objectURL(key).flatMap { try? checked($0) }
        }
        guard let url else { return nil }
        let (answer, size) = try await look(at: url)
        return size.map { FoundObject(size: $0, etag: answer.header("ETag")) }
    }

    /// What the answer about an object at `url` is, and which length it names. What was presigned for GET (dialect v1) cannot
    /// be sent as HEAD: it asks for one byte, and reads the length from Content-Range.
    func look(at url: HTTPURL) async throws(DeliveryError) -> (answer: HTTPResponse, size: Int64?) {
        let request =
            settings.dialect == .v1
            ? HTTPRequest("GET", url, headers: [("Range", "bytes=0-0")], answerLimit: 64 << 10)
            : HTTPRequest("HEAD", url)
        let answer = try await client.exchange(request)
        if answer.status == 416 { return (answer, 0) }
        guard answer.isSuccess else { return (answer, nil) }
        let total = answer.header("Content-Range")?.split(separator: "/").last.map(String.init)
        return (answer, (total ?? answer.header("Content-Length")).flatMap { Int64($0) })
    }
}
