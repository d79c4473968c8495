package import InletCore
internal import InletLinux
package import InletTransfer

/// The calls of a Roboscope server. Each is one request, never repeated, with two exceptions: `changing` repeats a
/// change after somebody else's, and orders from the command line need several.
package struct RoboscopeAPI: Sendable {
    let settings: RoboscopeSettings
    private let service: ServiceClient
    /// The total time for an answer, and the longest time without progress: as in the server's own app.
    let patience: Duration
    /// Whether requests continue for a moment when their task is cancelled.
    private(set) var isParting = false

    /// The same calls for the end of a cancelled task, to release locks. A server that does not answer at once is left
    /// alone.
    var parting: RoboscopeAPI {
        var api = self
        api.isParting = true
        return api
    }

    package init(settings: RoboscopeSettings, client: HTTPClient, patience: Duration = .seconds(30)) {
        self.settings = settings
        self.patience = patience
        let token = settings.token.map { Secret("Bearer \($0.reveal())") }
        service = ServiceClient(
            settings.url, client, login: token.map { .field(name: "Authorization", value: $0) } ?? .none)
    }

    /// The time for a connection, and again for an answer, in a cancelled task.
    private static let partingPatience = Duration.milliseconds(400)
    /// The limit of an answer with all markers of a session: 100,000 of them with some text.
    static let longList = 128 << 20

    // MARK: - Spaces, sessions, markers

    /// - Parameter query: filters such as `space_id`; the server may support fewer, so callers check again.
    func objects(
        _ kind: Kind, _ query: [(String, String)] = []
    ) async throws(DeliveryError) -> [RoboscopeObject] {
        var found: [RoboscopeObject] = []
        try await each(kind, query) { found.append($0) }
        return found
    }

    /// As `objects`, one by one: a session may have more markers than fit into memory as values.
    func each(
        _ kind: Kind, _ query: [(String, String)], _ take: (RoboscopeObject) -> Void
    ) async throws(DeliveryError) {
        let what = "listing \(kind.noun)s"
        do throws(DeliveryError) {
            let response = try await call("GET", kind.path, query: query, what, limit: Self.longList)
            try Self.each(response, what) { take(RoboscopeObject(fields: $0)) }
        } catch {
            // A server without even a list is not a Roboscope, which is not the file's fault. The trail is optional.
            guard error.code == .notFound, kind != .events else { throw error }
            throw DeliveryError(
                .outage(after: nil), .badAnswer,
                "there is no Roboscope API at \(settings.url.redacted) (\(error.reason)); 'url' ends with its version, as "
                    + "in /api/v1")
        }
    }

    func object(_ kind: Kind, _ id: String) async throws(DeliveryError) -> RoboscopeObject {
        let what = "reading \(kind.noun) \(DisplayText.escape(id))"
        let response = try await call("GET", try Self.path(kind, id), what)
        return RoboscopeObject(fields: try Self.object(response, what))
    }

    func make(_ kind: Kind, _ fields: JSONObject) async throws(DeliveryError) -> RoboscopeObject {
        let what = "creating a \(kind.noun)"
        let response = try await call("POST", kind.path, body: .object(fields), what)
        let made = RoboscopeObject(fields: try Self.object(response, what))
        guard !made.id.isEmpty else { throw Self.unreadable(what, "it has no id") }
        return made
    }

    /// Changes only the members in `fields`. - Throws: `.conflict` when their version is not the server's.
    func patch(_ kind: Kind, _ id: String, _ fields: JSONObject) async throws(DeliveryError) {
        let what = "changing \(kind.noun) \(DisplayText.escape(id))"
        _ = try await call("PATCH", try Self.path(kind, id), body: .object(fields), what)
    }

    func remove(_ kind: Kind, _ id: String) async throws(DeliveryError) {
        let what = "deleting \(kind.noun) \(DisplayText.escape(id))"
        _ = try await call("DELETE", try Self.path(kind, id), what)
    }

    /// `POST /markers/bulk`: all of them or none. `markers` are JSON texts.
    func create(markers: [[UInt8]]) async throws(DeliveryError) -> [RoboscopeObject] {
        let what = "creating \(markers.count) markers"
        let body = Array("{\"markers\":[".utf8) + markers.joined(separator: ",".utf8) + "]}".utf8
        let response = try await send(request("POST", "markers/bulk", body: body, limit: Self.longList), what)
        return try Self.list(response, what).map { RoboscopeObject(fields: $0) }
    }

    /// `POST /markers` with a JSON text: for servers without the other call.
    func create(marker: [UInt8]) async throws(DeliveryError) {
        _ = try await send(request("POST", "markers", body: marker, limit: 4 << 20), "creating a marker")
    }

    // MARK: - Read only

    /// The server's measurements of a marker; nil while there are none.
    package func details(ofMarker id: String) async throws(DeliveryError) -> JSONValue? {
        let what = "reading the details of marker \(DisplayText.escape(id))"
        let path = try Self.path(.markers, id) + "/details"
        let response = try await DeliveryError.ignoring(.notFound, in: await call("GET", path, what, limit: 16 << 20))
        return if let response { .object(try Self.object(response, what)) } else { nil }
    }

    /// Whether the server answers and accepts our credentials.
    func probe() async throws(DeliveryError) -> String {
        // A key that nobody has: the answer is short.
        let key = "inlet-probe-" + String(UInt64.random(in: .min ... .max), radix: 36)
        _ = try await objects(.spaces, [("key", key)])
        return "\(settings.url.redacted) answers" + (settings.token == nil ? "" : " and takes this token")
    }

    // MARK: - Requests

    func call(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil, _ what: String,
        limit: Int = 4 << 20
    ) async throws(DeliveryError) -> HTTPResponse {
        try await send(request(method, path, query: query, body: body?.bytes, limit: limit), what)
    }

    func request(
        _ method: String, _ path: String, query: [(String, String)] = [], body: [UInt8]? = nil, limit: Int
    ) -> HTTPRequest {
        var request = service.request(
            method, path, query: query.map { ($0.0, $0.1) }, json: body, limit: limit, patience: patience)
        if isParting {
            request.outlivesCancellation = true
            request.connectTimeout = Self.partingPatience
            request.answerDeadline = Self.partingPatience
        }
        return request
    }

    private func send(_ request: HTTPRequest, _ what: String) async throws(DeliveryError) -> HTTPResponse {
        try await service.send(request) { Self.error($0, "\(what) at \(settings.url.redacted)") }
    }

    private static func path(_ kind: Kind, _ id: String) throws(DeliveryError) -> String {
        try checked(id)
        return "\(kind.path)/\(id)"
    }

    static func checked(_ id: String) throws(DeliveryError) {
        guard RoboscopeAPI.isID(id) else {
            throw DeliveryError(.giveUp, .badRequest, "'\(DisplayText.escape(String(id.prefix(60))))' is not an id")
        }
    }
}

/// Reads answers, and gives errors their meaning.
extension RoboscopeAPI {
    /// A list of objects: bare, as the server sends it, or the only list in an object.
    static func list(_ response: HTTPResponse, _ what: String) throws(DeliveryError) -> [JSONObject] {
        var found: [JSONObject] = []
        try each(response, what) { found.append($0) }
        return found
    }

    /// Passes the objects of a list to `take` one by one: a long list is never in memory as values.
    static func each(
        _ response: HTTPResponse, _ what: String, _ take: (JSONObject) -> Void
    ) throws(DeliveryError) {
        var reader = JSONReader(response.body)
        var isFound = false
        do throws(JSONFault) {
            if try reader.next() == UInt8(ascii: "{") {
                try reader.members { _, reader throws(JSONFault) in
                    if try reader.next() == UInt8(ascii: "["), !isFound {
                        isFound = true
                        try objects(&reader, take)
                    } else {
                        _ = try reader.value()
                    }
                }
            } else {
                isFound = true
                try objects(&reader, take)
            }
            try reader.end()
        } catch {
            throw unreadable(what, "\(error)")
        }
        if !isFound { throw unreadable(what, "it holds no list") }
    }

    private static func objects(_ reader: inout JSONReader, _ take: (JSONObject) -> Void) throws(JSONFault) {
        try reader.elements { reader throws(JSONFault) in
            guard let fields = try reader.value().object else { throw reader.fault("the list holds more than objects") }
            take(fields)
        }
    }

    static func object(_ response: HTTPResponse, _ what: String) throws(DeliveryError) -> JSONObject {
        let value: JSONValue
        do {
            value = try JSONValue(parsing: response.body)
        } catch {
            throw unreadable(what, "\(error)")
        }
        guard let fields = value.object else { throw unreadable(what, "it is not an object") }
        return fields
    }

    /// The server may have done the request; ask again to find out.
    static func unreadable(_ what: String, _ why: String) -> DeliveryError {
        .misunderstood("\(what): the answer cannot be understood (\(why))")
    }

    /// 400 and 422 concern our request, 401 and 403 the token, 409 the version; 5xx and 429 pass.
    ///
    /// Only the server's own words, JSON or plain text, prove that something is missing: its host has pages for that.
    static func error(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        let heard = ErrorFormat.words.heard(response, secretsMatter: true)
        switch response.status {
        case 405 where heard.word != .foreign, 501 where heard.word != .foreign:
            return DeliveryError(
                .giveUp, .notFound, "\(what): the server has no such call (\(response.status))",
                heard: StepFailure(response.status, .refusal))
        case 404 where heard.word != .foreign, 410 where heard.word != .foreign:
            return DeliveryError(.giveUp, .notFound, "\(what): there is none (\(response.status))", heard: heard)
        default: return DeliveryError(response, what, in: .words, secretsMatter: true, now: .now)
        }
    }
}

/// Orders for a Roboscope server from the command line. Objects are JSON, with all their members.
extension RoboscopeAPI {
    /// - Parameter query: the server's filters: `key` and `include_inactive` of spaces; `space_id`, `status` and
    ///   `session_type` of sessions; `work_session_id` of markers.
    package func list(_ kind: Kind, query: [(String, String)] = []) async throws(DeliveryError) -> [JSONValue] {
        try await objects(kind, query).map(\.json)
    }

    /// The object called `id`; a space also by its key. - Throws: `.notFound`.
    package func get(_ kind: Kind, _ id: String) async throws(DeliveryError) -> JSONValue {
        try await object(kind, try await self.id(kind, id)).json
    }

    /// Creates an object from `fields`, and returns the server's version of it. Markers are checked first.
    package func create(_ kind: Kind, _ fields: JSONObject) async throws(DeliveryError) -> JSONValue {
        if kind == .markers, let fault = MarkerFile.objections(to: .object(fields)).first {
            throw DeliveryError(.giveUp, .badRequest, "the marker's \(fault)")
        }
        if kind == .events { throw Self.readOnly }
        return try await make(kind, fields).json
    }

    /// Changes the members in `fields`; `meta` and `custom_props` are merged with the existing ones. Sessions and
    /// markers carry their version; when others change them meanwhile, the change is repeated, at most three times.
    ///
    /// - Returns: the resulting object.
    package func update(_ kind: Kind, _ id: String, _ fields: JSONObject) async throws(DeliveryError) -> JSONValue {
        let changed = try await changing(kind, try await self.id(kind, id)) { current throws(DeliveryError) in
            var wanted = fields
            wanted["version"] = nil
            for name in ["meta", "custom_props"] {
                guard let new = fields[name]?.object, let old = current.json[name]?.object else { continue }
                wanted[name] = .object(old.merging(new) { $1 })
            }
            return wanted
        }
        return changed.json
    }

    package func delete(_ kind: Kind, _ id: String) async throws(DeliveryError) {
        try await remove(kind, try await self.id(kind, id))
    }

    /// The id of the space whose id or key is `text`.
    ///
    /// - Throws: `.notFound`; `.conflict` when several have the key.
    package func space(_ text: String) async throws(DeliveryError) -> String {
        let named = try await objects(.spaces, [("key", text)]).filter { $0.key == text }
        let shown = DisplayText.escape(String(text.prefix(60)))
        guard named.count < 2 else {
            let ids = named.map(\.id).joined(separator: ", ")
            throw DeliveryError(
                .giveUp, .conflict, "\(named.count) spaces have the key '\(shown)'; name one by its id: \(ids)")
        }
        if let space = named.first { return space.id }
        guard RoboscopeAPI.isID(text) else {
            throw DeliveryError(.giveUp, .notFound, "there is no space with the key '\(shown)'")
        }
        return text
    }

    private func id(_ kind: Kind, _ text: String) async throws(DeliveryError) -> String {
        if kind == .events { throw Self.readOnly }
        return kind == .spaces ? try await space(text) : text
    }

    private static let readOnly = DeliveryError(.giveUp, .badRequest, "events can only be listed")
}
