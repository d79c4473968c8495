internal import HTTPTypes
internal import InletCore

/// The document that describes the API (OpenAPI 3.0.3), made from the table and the types' schemas.
enum OpenAPI {
    static func document(_ table: [Endpoint], version: String) -> JSONValue {
        var types: [String: any Described.Type] = [ErrorReport.schemaName: ErrorReport.self]
        var paths: [String: [String: JSONValue]] = [:]
        for endpoint in table {
            if case .json(let schema) = endpoint.answer { schema.collect(&types) }
            endpoint.body?.schema.collect(&types)
            paths[endpoint.path, default: [:]][endpoint.verb.lowercased()] = operation(endpoint)
        }
        return .object([
            "openapi": .string("3.0.3"),
            "info": .object([
                "title": .string("Inlet"), "version": .string(version),
                "description": .string(
                    "The API of a running agent. Operations with x-inlet-need 'socket' are served on its control socket only; there, no login is needed. A query parameter or a key of a body that is not described, and a parameter that is not as it is described, are refused with 400."
                ),
            ]),
            "servers": .array([.object(["url": .string("/")])]),
            "security": .array([.object(["bearer": .array([])]), .object(["session": .array([])])]),
            "paths": .object(paths.mapValues { .object($0) }),
            "components": .object([
                "schemas": .object(types.mapValues { $0.schema.json }), "securitySchemes": securitySchemes,
            ]),
        ])
    }

    private static var securitySchemes: JSONValue {
        .object([
            "bearer": .object(["type": .string("http"), "scheme": .string("bearer")]),
            "session": .object([
                "type": .string("apiKey"), "in": .string("cookie"), "name": .string(LoginSessions.cookieName),
            ]),
        ])
    }

    private static func operation(_ endpoint: Endpoint) -> JSONValue {
        var object: [String: JSONValue] = [
            "summary": .string(endpoint.summary), "operationId": .string(name(endpoint)),
            "x-inlet-need": .string(endpoint.need.rawValue), "responses": responses(endpoint),
        ]
        let places = endpoint.describedPlaces.map { parameter($0.name, in: "path", $0.schema, note: nil) }
        let query = endpoint.query.map { parameter($0.name, in: "query", $0.schema, note: $0.note) }
        let parameters = places + query + (endpoint.isMarked ? [mark] : [])
        if !parameters.isEmpty { object["parameters"] = .array(parameters) }
        if endpoint.method == .post {
            // Without one, the header Content-Type must still say that there could be.
            let body = endpoint.body ?? Endpoint.Body(schema: .object([]), limit: 0, isRequired: false)
            object["requestBody"] = .object([
                "required": .boolean(body.isRequired), "content": content("application/json", body.schema),
            ])
        }
        if endpoint.need == .nothing { object["security"] = .array([]) }
        return .object(object)
    }

    /// `get_jobs_id_story`.
    private static func name(_ endpoint: Endpoint) -> String {
        let path =
            endpoint.path.hasPrefix(Endpoint.base) ? endpoint.path.dropFirst(Endpoint.base.count) : endpoint.path[...]
        let words = path.split { !$0.isLetter && !$0.isNumber }
        return ([endpoint.verb.lowercased()] + words.map(String.init)).joined(separator: "_")
    }

    /// What another site's page cannot send.
    private static var mark: JSONValue {
        parameter(
            "X-Inlet", in: "header", .word(["1"]), isRequired: true,
            note: "Asked for on the port; a request with a bearer token may leave it out.")
    }

    private static func parameter(
        _ name: String, in place: String, _ schema: Schema, isRequired: Bool = false, note: String?
    ) -> JSONValue {
        var object: [String: JSONValue] = [
            "name": .string(name), "in": .string(place), "required": .boolean(isRequired || place == "path"),
            "schema": schema.json,
        ]
        if let note { object["description"] = .string(note) }
        return .object(object)
    }

    private static func responses(_ endpoint: Endpoint) -> JSONValue {
        let answer: JSONValue =
            switch endpoint.answer {
            case .json(let schema): content("application/json", schema)
            case .text(let type): content(type, .text)
            case .stream: content("text/event-stream", .text)
            }
        let statuses = ([200] + endpoint.others).map { status in
            (String(status), JSONValue.object(["description": .string("The answer."), "content": answer]))
        }
        let refusal = JSONValue.object([
            "description": .string("Why not."), "content": content("application/json", .named(ErrorReport.self)),
        ])
        return .object(Dictionary(statuses + [("default", refusal)]) { first, _ in first })
    }

    private static func content(_ type: String, _ schema: Schema) -> JSONValue {
        .object([type: .object(["schema": schema.json])])
    }
}

extension Endpoint {
    /// Whether the port wants to know that no other site's page asks.
    fileprivate var isMarked: Bool { method == .post && need != .socket }
}
