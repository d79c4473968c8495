internal import HTTPTypes

/// The table: everything that can be asked, in the order of the document.
enum Endpoints {
    static let all: [Endpoint] =
        reading + batches + live + actions + limits + session + health + socket + [document]

    /// What there is at a path, and what that knows.
    static func find(_ method: String, _ path: String, on table: [Endpoint]) -> Result<Match, APIFault> {
        let parts = path.split(separator: "/")
        var allowed: [String] = []
        for endpoint in table {
            guard let places = endpoint.places(of: parts) else { continue }
            if endpoint.method.rawValue == method { return .success(Match(endpoint: endpoint, places: places)) }
            allowed.append(endpoint.method.rawValue)
        }
        return .failure(
            allowed.isEmpty
                ? .notFound("there is nothing at this path; \(Endpoint.base)openapi.json says what there is")
                : APIFault(405, "method", "this path knows \(allowed.joined(separator: " and "))", allowed: allowed))
    }

    struct Match: Sendable {
        var endpoint: Endpoint
        var places: [String: String]
    }
}
