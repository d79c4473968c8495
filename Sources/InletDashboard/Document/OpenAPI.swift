internal import HTTPTypes
package import InletCore

extension Endpoints {
    /// The document that describes the API (OpenAPI 3.0.3), made from the table and the types' schemas.
    package static func openAPI(version: String) -> JSONValue {
        var types: [String: any NamedSchema.Type] = [ErrorReport.schemaName: ErrorReport.self]
        var paths: [String: [String: JSONValue]] = [:]
        for endpoint in all {
            endpoint.answer.collect(&types)
            endpoint.body?.schema.collect(&types)
            paths[endpoint.path, default: [:]][endpoint.verb.lowercased()] = endpoint.operation
        }
        return .object([
            "openapi": .string("3.0.3"),
            "info": .object([
                "title": .string("Inlet"), "version": .string(version),
                "description": .string(
                    "The API of a running agent. Operations with x-inlet-need 'socket' are served on its control socket only; there, no login is needed. Unknown query parameters and body keys, and invalid values, are refused with 400."
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
}

extension Endpoint {
    fileprivate var operation: JSONValue {
        let places = describedPlaces.map { Self.parameter($0.name, in: "path", $0.schema, isRequired: true) }
        let query = query.map { Self.parameter($0.name, in: "query", $0.schema, note: $0.note) }
        // On the port: a header that another site's page cannot send.
        let mark = Self.parameter(
            "X-Inlet", in: "header", .word(["1"]), isRequired: true,
            note: "Required on the port; a request with a bearer token may leave it out.")
        let parameters = places + query + (method == .post && need != .socket ? [mark] : [])
        // An order without a body is described too: the Content-Type header must announce a possible body.
        let body = body ?? Body(schema: .object([]), isRequired: false)
        return .members([
            "summary": .string(summary), "operationId": .string(operationID), "x-inlet-need": .string(need.rawValue),
            "responses": responses, "parameters": parameters.isEmpty ? nil : .array(parameters),
            "requestBody": method != .post
                ? nil
                : .object([
                    "required": .boolean(body.isRequired), "content": Self.content("application/json", body.schema),
                ]),
            "security": need == .nothing ? .array([]) : nil,
        ])
    }

    /// `get_jobs_id_story`.
    private var operationID: String {
        let words = path.trimmingPrefix(Self.base).split { !$0.isLetter && !$0.isNumber }
        return ([verb.lowercased()] + words.map(String.init)).joined(separator: "_")
    }

    private static func parameter(
        _ name: String, in place: String, _ schema: Schema, isRequired: Bool = false, note: String? = nil
    ) -> JSONValue {
        .members([
            "name": .string(name), "in": .string(place), "required": .boolean(isRequired), "schema": schema.json,
            "description": note.map { .string($0) },
        ])
    }

    private var responses: JSONValue {
        func response(_ description: String, _ content: JSONValue) -> JSONValue {
            .object(["description": .string(description), "content": content])
        }
        var responses = ["default": response("Why not.", Self.content("application/json", .named(ErrorReport.self)))]
        for status in [200] + others {
            responses[String(status)] = response("The answer.", Self.content(answerType, answer))
        }
        return .object(responses)
    }

    private static func content(_ type: String, _ schema: Schema) -> JSONValue {
        .object([type: .object(["schema": schema.json])])
    }
}
