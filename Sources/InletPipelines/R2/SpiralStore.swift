internal import FoundationEssentials
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
        let finding = try await ObjectLookup(api: api).find(record.upload.key)
        guard ObjectLookup.matches(finding, size: record.plan.fileSize, expectedETag: record.expectedETag),
            case .found(_, let etag) = finding
        else { return nil }
        return Composed(url: nil, etag: etag.map { ETagJudge.bare($0) })
    }

    func abort(id: String, key: String) async throws(DeliveryError) { try await api.abort(id: id, key: key) }

    func location(_ key: String, answered: String?) -> String? { api.publicLocation(key, answered: answered) }
}

/// One presigned URL.
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
        guard text.utf8.count == 16, text.hasSuffix("Z") else { return nil }
        let digits = text.filter(\.isNumber)
        guard digits.count == 14, let all = Int64(digits) else { return nil }
        let (date, clock) = all.quotientAndRemainder(dividingBy: 1_000_000)
        var components = DateComponents()
        components.year = Int(date / 10_000)
        components.month = Int(date / 100 % 100)
        components.day = Int(date % 100)
        components.hour = Int(clock / 10_000)
        components.minute = Int(clock / 100 % 100)
        components.second = Int(clock % 100)
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar.date(from: components).map {
            WallTime(milliseconds: Int64(($0.timeIntervalSince1970 * 1000).rounded()))
        }
    }
}

/// Finds out whether an object is already there, after an answer was lost.
struct ObjectLookup: Sendable {
    let api: SpiralAPI

    enum Finding: Sendable, Equatable {
        /// There, with this length and tag.
        case found(size: Int64, etag: String?)
        case missing
        /// This destination offers no way to tell.
        case unknown
    }

    /// Asks `objects/url` (dialect v1), or the configured `public_url`.
    func find(_ key: String) async throws(DeliveryError) -> Finding {
        if api.settings.dialect == .v1 {
            guard let text = try await api.objectURL(key) else { return .missing }
            let rules = URLRules.sentByServer(at: api.settings.api, allowHTTP: api.settings.allowHTTP)
            // An address that may not be asked tells nothing.
            guard let url = try? HTTPURL(text, rules: rules) else { return .unknown }
            return try await firstByte(url)
        }
        guard let base = api.settings.publicURL else { return .unknown }
        let response = try await api.client.exchange(HTTPRequest("HEAD", base.appending(path: key)))
        return Self.finding(response, length: response.header("Content-Length"))
    }

    /// A presigned GET cannot be sent as HEAD: it asks for one byte and reads the length from Content-Range.
    private func firstByte(_ url: HTTPURL) async throws(DeliveryError) -> Finding {
        let request = HTTPRequest("GET", url, headers: [("Range", "bytes=0-0")], answerLimit: 64 << 10)
        let response = try await api.client.exchange(request)
        if response.status == 416 { return .found(size: 0, etag: response.header("ETag")) }
        let total = response.header("Content-Range")?.split(separator: "/").last.map(String.init)
        return Self.finding(response, length: total ?? response.header("Content-Length"))
    }

    private static func finding(_ response: HTTPResponse, length: String?) -> Finding {
        switch response.status {
        case 404 where !response.isPage && !response.isHostsOwn: .missing
        case 200..<300: length.flatMap { Int64($0) }.map { .found(size: $0, etag: response.header("ETag")) } ?? .unknown
        default: .unknown
        }
    }

    /// Whether what was found is what was sent: the length, and the tag where both sides have R2's kind.
    static func matches(_ finding: Finding, size: Int64, expectedETag: String?) -> Bool {
        guard case .found(size, let etag) = finding else { return false }
        guard let expectedETag, let etag else { return true }
        let bare = ETagJudge.bare(etag)
        let isComposite = bare.contains("-") || bare.count == 32
        return !isComposite || bare == expectedETag
    }
}
