import Foundation
import HTTPTypes
import Hummingbird

/// What a request is for, read from its method, path and query.
enum SpiralRoute: Sendable {
    /// The path in front of `/multipart/…`: which dialects speak there, and whether the key is asked for.
    enum Door: String, Sendable {
        case r2
        case v1
    }

    case create(Door)
    case complete(Door)
    case abort(Door)
    case presign
    case objectURL(key: String)
    case part(key: String, upload: String, number: Int)
    case single(key: String)
    case presignedRead(key: String)
    case publicRead(key: String)

    /// The path in front of the keys of presigned URLs: the bucket's name, as path-style S3 addresses have it.
    static let bucket = "/sandbox/"
    static let publicFolder = "/public/"
    static let objectURLs = "/v1/objects/url/"

    init(_ request: SignableRequest) throws(StoreError) {
        switch (request.method, request.path) {
        case ("POST", "/r2/multipart/create"): self = .create(.r2)
        case ("POST", "/v1/multipart/create"): self = .create(.v1)
        case ("POST", "/r2/multipart/complete"): self = .complete(.r2)
        case ("POST", "/v1/multipart/complete"): self = .complete(.v1)
        case ("POST", "/r2/multipart/abort"): self = .abort(.r2)
        case ("POST", "/v1/multipart/abort"): self = .abort(.v1)
        case ("POST", "/v1/presign/upload"): self = .presign
        default: self = try Self.withKey(request)
        }
    }

    private static func withKey(_ request: SignableRequest) throws(StoreError) -> Self {
        let path = request.path
        switch request.method {
        case "GET" where path.hasPrefix(objectURLs): return .objectURL(key: path.after(objectURLs))
        case "PUT" where path.hasPrefix(bucket): return try put(path.after(bucket), request)
        case "GET" where path.hasPrefix(bucket), "HEAD" where path.hasPrefix(bucket):
            return .presignedRead(key: path.after(bucket))
        case "GET" where path.hasPrefix(publicFolder), "HEAD" where path.hasPrefix(publicFolder):
            return .publicRead(key: path.after(publicFolder))
        default: throw .notFound
        }
    }

    private static func put(_ key: String, _ request: SignableRequest) throws(StoreError) -> Self {
        switch (request.value("uploadId"), request.value("partNumber").map(Int.init)) {
        case (nil, nil): return .single(key: key)
        case (let upload?, let number??): return .part(key: key, upload: upload, number: number)
        default: throw .badRequest("A part's URL needs uploadId and a partNumber that is a number.")
        }
    }

    var operation: SpiralOperation {
        switch self {
        case .create: .create
        case .complete: .complete
        case .abort: .abort
        case .presign: .presign
        case .objectURL: .objectURL
        case .part: .part
        case .single: .single
        case .presignedRead, .publicRead: .read
        }
    }

    var part: Int? { if case .part(_, _, let number) = self { number } else { nil } }

    /// Whether the call must carry the key of the v1 dialect.
    var needsKey: Bool {
        switch self {
        case .create(.v1), .complete(.v1), .abort(.v1), .presign, .objectURL: true
        case .create, .complete, .abort, .part, .single, .presignedRead, .publicRead: false
        }
    }

    /// Whether errors come as the store's XML; the control calls answer JSON.
    var speaksXML: Bool {
        switch self {
        case .part, .single, .presignedRead, .publicRead: true
        case .create, .complete, .abort, .presign, .objectURL: false
        }
    }
}

extension String {
    fileprivate func after(_ prefix: String) -> String { String(dropFirst(prefix.count)) }
}

extension SignableRequest {
    /// What a signature of the arrived request would have to cover. nil when the path or query is not decodable.
    init?(_ request: Request) {
        let halves = (request.head.path ?? "/").split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let path = URIText.decode(halves[0]),
            let query = URIText.decodeQuery(halves.count > 1 ? String(halves[1]) : "")
        else { return nil }
        let signsType = query.contains { $0.name == "X-Amz-SignedHeaders" && $0.value == "content-type;host" }
        self.init(
            method: request.method.rawValue, path: path, query: query, host: request.head.authority ?? "",
            contentType: signsType ? request.headers[.contentType] ?? "" : nil)
    }
}
