internal import InletCore
internal import InletTransfer

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
