/// What a request is for, read from its method, path and query (path style: `/bucket/key`).
struct S3Route: Sendable {
    enum Call: Sendable {
        case put
        case get
        case head
        case delete
        case create
        case part(number: Int, upload: String)
        case parts(upload: String)
        case complete(upload: String)
        case abort(upload: String)
    }

    enum Target: Sendable {
        case object(key: String, Call)
        case list
        case uploads
        case headBucket
        case unknown
    }

    let bucket: String
    let target: Target

    init(_ request: SignableRequest) {
        let path = request.path.dropFirst()
        let end = path.firstIndex(of: "/") ?? path.endIndex
        bucket = String(path[..<end])
        let key = String(path[end...].dropFirst())
        target = key.isEmpty ? Self.ofBucket(request) : Self.ofObject(key, request)
    }

    private static func ofBucket(_ request: SignableRequest) -> Target {
        switch request.method {
        case "HEAD": .headBucket
        case "GET" where request.has("uploads"): .uploads
        case "GET" where request.value("list-type") == "2": .list
        default: .unknown
        }
    }

    private static func ofObject(_ key: String, _ request: SignableRequest) -> Target {
        let upload = request.value("uploadId")
        switch (request.method, upload, request.value("partNumber").flatMap(Int.init)) {
        case ("PUT", let upload?, let number?): return .object(key: key, .part(number: number, upload: upload))
        case ("PUT", nil, nil): return .object(key: key, .put)
        case ("GET", let upload?, _): return .object(key: key, .parts(upload: upload))
        case ("GET", nil, _): return .object(key: key, .get)
        case ("HEAD", nil, _): return .object(key: key, .head)
        case ("POST", let upload?, _): return .object(key: key, .complete(upload: upload))
        case ("POST", nil, _) where request.has("uploads"): return .object(key: key, .create)
        case ("DELETE", let upload?, _): return .object(key: key, .abort(upload: upload))
        case ("DELETE", nil, _): return .object(key: key, .delete)
        default: return .unknown
        }
    }

    var operation: S3Operation {
        switch target {
        case .list: .listObjects
        case .uploads: .listMultipartUploads
        case .headBucket: .headBucket
        case .unknown: .unknown
        case .object(_, let call):
            switch call {
            case .put: .putObject
            case .get: .getObject
            case .head: .headObject
            case .delete: .deleteObject
            case .create: .createMultipartUpload
            case .part: .uploadPart
            case .parts: .listParts
            case .complete: .completeMultipartUpload
            case .abort: .abortMultipartUpload
            }
        }
    }

    var part: Int? {
        if case .object(_, .part(let number, _)) = target { number } else { nil }
    }
}

extension SignableRequest {
    fileprivate func has(_ name: String) -> Bool { query.contains { $0.name == name } }
}
