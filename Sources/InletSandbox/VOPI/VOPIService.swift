import Foundation
import Hummingbird
import InletCore
import Synchronization
import SystemPackage

/// The table of calls and their answers, in the order of the real server: it refuses a bad body before bad credentials.
final class VOPIService: Sendable {
    struct State: Sendable {
        let store: ObjectStore
        var rules: VOPIRules {
            didSet { for index in jobs.indices { jobs[index].progress = rules.toldProgress } }
        }
        var credits: Int
        var logins = VOPILogins()
        /// Oldest first.
        var jobs: [VOPIJob] = []
        var videos: [VOPISandbox.Video] = []
        var tally = VOPISandbox.Counts()
    }

    /// Answers a call after its body is read; nil = 204.
    typealias Handler = @Sendable (SandboxCall, SandboxJSON) throws -> SandboxJSON?

    /// The path before the keys of presigned URLs: the bucket's name, as in path-style S3 addresses.
    static let bucket = "/vopi-storage/"
    private static let longestBody = 1 << 20
    /// S3's limit of one PUT: 5 GiB.
    private static let longestVideo: Int64 = 5 << 30

    private let apiKey: Secret?
    private let store: ObjectStore
    private let signer: RequestSigner
    let clock: @Sendable () -> WallTime
    let state: Mutex<State>

    init(
        directory: FilePath, apiKey: Secret?, credits: Int, rules: VOPIRules, clock: @escaping @Sendable () -> WallTime
    ) throws {
        (self.apiKey, self.clock) = (apiKey, clock)
        store = try ObjectStore(directory: directory)
        signer = RequestSigner(secret: try SigningSecret.load(from: directory))
        state = Mutex(State(store: store, rules: rules, credits: credits))
    }

    var rules: VOPIRules { state.withLock { $0.rules } }

    func update<Value: Sendable, Failure>(
        _ change: (inout State, WallTime) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let now = clock()
        return try state.withLock { state throws(Failure) in try change(&state, now) }
    }

    var routes: [SandboxRoute<VOPIOperation>] {
        let (api, job) = ("/api/v1", "/api/v1/jobs/{id}")
        return [
            .init("PUT \(Self.bucket){key...}", .upload, put),
            .init("GET|HEAD \(Self.bucket){key...}", .download, get),
            row("GET /ready", .ready, isOpen: true, ready),
            row("POST \(api)/auth/refresh", .refresh, of: .bearer, isOpen: true, refresh),
            // These two check credentials after the body.
            row("POST \(api)/uploads/presign", .presign, isOpen: true, presign),
            row("POST \(api)/jobs", .createJob, isOpen: true, createJob),
            row("GET \(api)/jobs", .listJobs, list),
            row("GET \(api)/credits/balance", .balance, of: .bearer, balance),
            row("GET \(job)", .job) { [self] call, _ in
                try self.job(Self.id(call)).full(rules.generation, origin: Self.origin(call))
            },
            row("DELETE \(job)", .delete, delete),
            row("GET \(job)/status", .status) { [self] call, _ in try .object(self.job(Self.id(call)).answer) },
            row("POST \(job)/cancel", .cancel, of: .bearer, cancel),
            row("DELETE \(job)/images/{frame}/{version}", .deleteImage, of: .bearer, deleteImage),
            row("GET \(job)/download-urls", .downloadURLs, downloadURLs),
            row("GET \(job)/metadata", .metadata, metadata),
            read("frames", []) { job, origin in job.listFrames(origin, isFinal: false) },
            read("frames/final", []) { job, origin in job.listFrames(origin, isFinal: true) },
            read("images/grouped", .empty) { job, origin in job.groupImages(origin) },
            row("*", .other, isOpen: true) { [self] call, _ in try unknown(call) },
        ]
    }

    /// A row whose body is read as JSON, and refused, before the call's existence and credentials are checked.
    ///
    /// - Parameters:
    ///   - generation: The only generation with this call; nil = both have it.
    ///   - isOpen: Whether it needs no login.
    ///   - takesKey: Whether the newer server accepts an API key as a login.
    private func row(
        _ pattern: String, _ operation: VOPIOperation, of generation: VOPIRules.Generation? = nil, isOpen: Bool = false,
        takesKey: Bool = false, _ handle: @escaping Handler
    ) -> SandboxRoute<VOPIOperation> {
        SandboxRoute(pattern, operation) { [self] call in
            let body = try await Self.body(of: &call)
            guard generation == nil || generation == rules.generation else { try unknown(call) }
            if !isOpen { try authorize(call, takesKey: takesKey) }
            guard let answer = try handle(call, body) else { return Response(status: .noContent) }
            return try .json(answer, status: operation == .createJob ? 201 : 200)
        }
    }

    /// A read of a job's results. These calls know no owner, and do not say why they find no job.
    ///
    /// - Parameter absent: The answer where there is no job.
    private func read(
        _ what: String, _ absent: SandboxJSON, _ tell: @escaping @Sendable (VOPIJob, _ origin: String) -> SandboxJSON
    ) -> SandboxRoute<VOPIOperation> {
        row("GET /api/v1/jobs/{id}/\(what)", .results, takesKey: true) { [self] call, _ in
            let id = try Self.id(call)
            let isThere = state.withLock { $0.jobs.contains { $0.id == id } }
            return isThere ? tell(try job(id), Self.origin(call)) : absent
        }
    }

    /// The body as JSON; null without a body. The server refuses unknown types and invalid JSON as its own failure.
    private static func body(of call: inout SandboxCall) async throws -> SandboxJSON {
        let (body, method) = (try await call.body.whole(), call.address.method)
        guard body.count <= longestBody else { throw internalError }
        if method == "GET" || method == "HEAD" { return .null }
        if method == "DELETE", body.isEmpty, call.body.expected == nil { return .null }
        switch call.fields[.contentType].map({ String($0.prefix { $0 != ";" }).lowercased() }) {
        case nil where body.isEmpty: return .null
        case "text/plain": return .string(String(decoding: body, as: UTF8.self))
        case "application/json":
            do { return try JSON.decode(body, as: SandboxJSON.self) } catch { throw internalError }
        default: throw internalError
        }
    }

    /// Refuses invalid credentials: API key or bearer token, by the generation.
    ///
    /// The token is tried first. A good key hides the token's fault, and is then valid for some reads only.
    private func authorize(_ call: SandboxCall, takesKey: Bool = false) throws {
        let key = call.fields["x-api-key"]
        let isKey = apiKey.map { SigningSecret.areEqual(key ?? "", $0.reveal()) } ?? false
        if rules.generation == .apiKey {
            guard isKey else { try Self.refuseLogin(key == nil ? "Missing API key" : "Invalid API key") }
            return
        }
        do {
            guard let token = call.fields[.authorization], token.hasPrefix("Bearer ") else {
                try Self.refuseLogin("Authentication required. Provide a valid Bearer token or API key.")
            }
            try update { state, now in
                try state.logins.check(String(token.dropFirst(7)), isRefresh: false, now)
            }
        } catch {
            guard isKey else { throw error }
            guard takesKey else { try Self.refuseLogin("User authentication required. Please log in.") }
        }
    }

    private func unknown(_ call: SandboxCall) throws -> Never {
        try authorize(call, takesKey: true)
        let name = "\(call.address.method):\(call.request.head.path ?? "")"
        let body: SandboxJSON = [
            "message": .string("Route \(name) not found"), "error": "Not Found", "statusCode": 404,
        ]
        throw try SandboxReply.json(body, status: 404)
    }

    /// The store refuses in XML; its other refusals count as the server's own failure.
    static func word(_ refusal: SandboxRefusal, _ operation: VOPIOperation?) -> SandboxReply {
        switch operation {
        case .upload, .download, nil: refusal.xml
        default: internalError
        }
    }

    /// A job's id from a path.
    static func id(_ call: SandboxCall) throws -> String {
        guard let id = UUID(uuidString: call["id"]) else { try refuseSchema("/id", "format", "uuid") }
        return id.uuidString.lowercased()
    }

    /// Comes before the keys of objects, in addresses without a signature.
    static func origin(_ call: SandboxCall) -> String { "http://\(call.host)\(bucket)" }
}

// MARK: - Health and logins

extension VOPIService {
    private func ready(_ call: SandboxCall, _: SandboxJSON) throws -> SandboxJSON? {
        ["status": "ok", "timestamp": .string(clock().rfc3339), "checks": ["database": "ok", "redis": "ok"]]
    }

    private func refresh(_: SandboxCall, _ body: SandboxJSON) throws -> SandboxJSON? {
        guard let token = body["refreshToken"]?.text else { try Self.refuseSchema("", "required", "refreshToken") }
        let session = try update { state, now in
            let session = try state.logins.refresh(token, now)
            state.tally.refreshes += 1
            return session
        }
        return [
            "accessToken": .string(session.accessToken.reveal()),
            "refreshToken": .string(session.refreshToken.reveal()),
            "expiresIn": .number(Double(VOPILogins.accessLifetime)), "tokenType": "Bearer",
        ]
    }
}

// MARK: - Videos in, results out

extension VOPIService {
    private func presign(_ call: SandboxCall, _ body: SandboxJSON) throws -> SandboxJSON? {
        let (ending, lifetime) = try Self.presignOrder(body)
        try authorize(call)
        let key = "uploads/\(UUID().uuidString.lowercased()).\(ending)"
        state.withLock { $0.tally.presigns += 1 }
        return [
            "uploadUrl": .string(url("PUT", key, lifetime, call)), "key": .string(key),
            "publicUrl": .string(Self.origin(call) + key), "expiresIn": .number(Double(lifetime)),
        ]
    }

    private func put(_ call: inout SandboxCall) async throws -> Response {
        try signer.verify(call.address, now: clock())
        guard call.fields[.authorization] == nil else {
            throw SandboxRefusal.invalidArgument("Only one auth mechanism allowed")
        }
        let key = try ObjectKey(call["key"])
        var file = try ReceivedFile(in: store.incoming)
        try await call.receive(into: &file, limit: Self.longestVideo)
        let type = call.fields[.contentType] ?? "application/octet-stream"
        let object = try store.keepSingle(key, contentType: type, file)
        let url = Self.origin(call) + key.text
        state.withLock { state in
            state.tally.puts += 1
            let puts = 1 + (state.videos.last { $0.key == object.key }?.puts ?? 0)
            state.videos.removeAll { $0.key == object.key }
            state.videos.append(
                VOPISandbox.Video(
                    key: object.key, publicURL: url, size: object.size, sha256: object.sha256, contentType: type,
                    puts: puts))
        }
        return call.stored(etag: call.etag(object.md5.bytes))
    }

    /// A URL that is presigned for GET is valid for HEAD.
    private func get(_ call: inout SandboxCall) throws -> Response {
        var signed = call.address
        signed.method = "GET"
        try signer.verify(signed, now: clock())
        return try store.read(call["key"], call.fields)
    }

    private func createJob(_ call: SandboxCall, _ body: SandboxJSON) throws -> SandboxJSON? {
        let (draft, seconds) = try Self.draft(body, clock())
        try authorize(call)
        let job = try add(draft, seconds: seconds)
        return [
            "id": .string(job.id), "status": "pending", "videoUrl": .string(job.videoURL),
            "config": rules.generation == .bearer ? job.config : .empty, "createdAt": .string(job.created.rfc3339),
        ]
    }

    private func downloadURLs(_ call: SandboxCall, _: SandboxJSON) throws -> SandboxJSON? {
        let id = try Self.id(call)
        let lifetime = try Self.whole("expiresIn", call.query("expiresIn"), default: 3600, Self.lifetimes)
        let (job, rules) = (try job(id), rules)
        guard job.completed != nil else {
            try Self.refuse(400, "BAD_REQUEST", "Job has no results yet. Wait for job to complete.", isBare: true)
        }
        let dropped = Set(job.pictures.suffix(rules.droppedLinks).map(\.object.key))
        let link = { [self] (object: StoredObject) -> SandboxJSON? in
            dropped.contains(object.key) ? nil : .string(url("GET", object.key, lifetime, call))
        }
        let frames = job.frames.compactMap { frame -> SandboxJSON? in
            link(frame.object).map { ["frameId": .string(frame.name), "downloadUrl": $0] }
        }
        var answer: [String: SandboxJSON] = [
            "jobId": .string(id), "expiresIn": .number(Double(lifetime)), "frames": .array(frames),
            "commercialImages": job.images(link),
        ]
        if rules.listsMetadata { answer["productMetadata"] = job.metadata ?? .null }
        return .object(answer)
    }

    private func metadata(_ call: SandboxCall, _: SandboxJSON) throws -> SandboxJSON? {
        guard let metadata = try job(Self.id(call)).metadata else {
            try Self.refuse(
                404, "NOT_FOUND",
                "Job has no product metadata. Metadata is only available for jobs processed with audio analysis.",
                isBare: true)
        }
        return metadata
    }

    private func url(_ method: String, _ key: String, _ lifetime: Int, _ call: SandboxCall) -> String {
        let request = DecodedRequest(method: method, path: Self.bucket + key, host: call.host)
        return signer.url(request, lifetime: Int64(lifetime), now: clock(), fault: call.fault)
    }
}
