internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// tus 1.0.0 (tus.io/protocols/resumable-upload): the core protocol, creation and termination. Every call is one request.
struct Tus: Sendable {
    let api: GigHiveAPI

    static let version = "1.0.0"

    /// Opens an upload of `length` bytes. - Returns: its id.
    func create(length: Int64, fileName: [UInt8], mediaType: String) async throws(DeliveryError) -> String {
        let what = "creating an upload at \(files.redacted)"
        let fields: HTTPFields = [
            ("Upload-Length", String(length)),
            ("Upload-Metadata", Self.metadata([("filename", fileName), ("filetype", Array(mediaType.utf8))])),
        ]
        let response = try await call(HTTPRequest("POST", files, headers: Self.headers + fields), what)
        guard response.status == 201, let location = response.header("Location") else {
            throw GigHiveVerdict.done.error(response, what)
        }
        do throws(DeliveryError) {
            return try Self.id(location, below: files)
        } catch {
            throw error.redacted(by: response.redactor)
        }
    }

    /// How many bytes of the upload the server has.
    func offset(of upload: String, length: Int64) async throws(DeliveryError) -> Int64 {
        let what = "looking up the upload at \(files.redacted)"
        let response = try await call(HTTPRequest("HEAD", url(upload), headers: Self.headers), what)
        guard let offset = Self.offset(response, length) else {
            throw .misunderstood("\(what): the answer has no usable Upload-Offset", response.status)
        }
        if let total = response.header("Upload-Length"), total != String(length) {
            throw DeliveryError(
                .retry(after: nil), .uploadGone, "\(what): it is one of \(total) bytes, not of \(length)")
        }
        return offset
    }

    /// Sends the bytes of `range`. - Returns: how many the server has then.
    func send(
        _ range: Range<Int64>, of source: SourceFile, to upload: String, length: Int64, meter: TransferMeter
    ) async throws(DeliveryError) -> Int64 {
        let what = "sending bytes \(range.lowerBound) to \(range.upperBound) of \(length)"
        let fields: HTTPFields = [
            ("Upload-Offset", String(range.lowerBound)), ("Content-Type", "application/offset+octet-stream"),
        ]
        let request = HTTPRequest(
            "PATCH", url(upload), headers: Self.headers + fields,
            body: .slice(source, offset: range.lowerBound, length: Int64(range.count)), answerDeadline: .seconds(120))
        let response = try await call(request, what, meter: meter)
        // Any other offset says that nothing of this arrived, or something else; it must not keep us here.
        guard let offset = Self.offset(response, length), offset > range.lowerBound, offset <= range.upperBound else {
            meter.add(-Int64(range.count))
            throw .misunderstood("\(what): the answer has no usable Upload-Offset", response.status)
        }
        return offset
    }

    /// Drops the upload with its bytes. One that is not there counts as dropped.
    func delete(_ upload: String) async throws(DeliveryError) {
        let what = "dropping an upload at \(files.redacted)"
        try await DeliveryError.ignoring(
            .uploadGone, in: await call(HTTPRequest("DELETE", url(upload), headers: Self.headers), what))
    }

    /// Drops the upload, waiting a moment for a server that still holds a request that was broken off.
    func drop(_ upload: String) async throws(DeliveryError) {
        for wait in [Duration.milliseconds(200), .seconds(1), nil] {
            do throws(DeliveryError) {
                return try await delete(upload)
            } catch {
                // Cancelled, it waits no longer, and the error stands.
                guard error.code == .conflict, let wait, (try? await Task.sleep(for: wait)) != nil else { throw error }
            }
        }
    }

    private var files: HTTPURL { api.settings.url.appending(path: "files/") }

    private func url(_ upload: String) -> HTTPURL { api.settings.url.appending(path: "files/\(upload)") }

    private static let headers: HTTPFields = [("Tus-Resumable", version)]

    private func call(
        _ request: HTTPRequest, _ what: String, meter: TransferMeter? = nil
    ) async throws(DeliveryError) -> HTTPResponse {
        try await api.service.send(request, meter: meter) { GigHiveVerdict($0, at: .files).error($0, what) }
    }

    /// How much of an upload of `length` bytes a server says that it has; nil for what cannot be so.
    static func offset(_ response: HTTPResponse, _ length: Int64) -> Int64? {
        response.header("Upload-Offset").flatMap { Int64($0) }.flatMap { (0...length).contains($0) ? $0 : nil }
    }

    /// `Upload-Metadata`: names and base64 values.
    static func metadata(_ pairs: [(String, [UInt8])]) -> String {
        pairs.map { "\($0.0) \(Data($0.1).base64EncodedString())" }.joined(separator: ",")
    }

    /// The upload's id in a `Location`, which must be `files` itself with the id behind it: credentials go nowhere else.
    /// Only the scheme may differ, which servers behind a TLS proxy get wrong; ours is used whatever they say.
    static func id(_ location: String, below files: HTTPURL) throws(DeliveryError) -> String {
        var path = location[...]
        if !location.hasPrefix("/") {
            let url: HTTPURL
            do {
                // What is compared here is never connected to.
                url = try HTTPURL(location, rules: .configured(allowHTTP: true))
            } catch {
                throw DeliveryError(error)
            }
            let isDefault = url.port == (url.scheme == "https" ? 443 : 80)
            let isOurs = url.port == files.port || isDefault && files.port == (files.scheme == "https" ? 443 : 80)
            guard url.host == files.host, isOurs else {
                throw DeliveryError(
                    .giveUp, .forbiddenURL,
                    "the server put the upload at \(url.redacted), which is not below \(files.redacted)",
                    heard: Heard(201, .everybody))
            }
            path = url.path[...]
        }
        let id = path.hasPrefix(files.path) ? path.dropFirst(files.path.count) : ""
        guard (1...200).contains(id.utf8.count), id.utf8.allSatisfy({ GigHiveSettings.tokenBytes.contains($0) }) else {
            throw DeliveryError(
                .giveUp, .forbiddenURL, "the server put the upload at a place that is not below \(files.redacted)",
                heard: Heard(201, .everybody))
        }
        return String(id)
    }
}
