import HTTPTypes
import InletCore

/// Who may ask what: by bearer token or API key, as the generation has it.
struct VOPIAccess: Sendable {
    let shop: VOPIShop
    let apiKey: Secret?

    func check(_ route: VOPIRoute, _ fields: HTTPFields) throws(VOPIRefusal) {
        switch route {
        case .ready, .health, .refresh, .put, .get: return
        default: break
        }
        switch shop.rules.generation {
        case .apiKey: try checkKey(fields)
        case .bearer: try checkBearer(route, fields)
        }
    }

    private func checkKey(_ fields: HTTPFields) throws(VOPIRefusal) {
        guard let given = fields[.vopiKey] else { throw .unauthorized("Missing API key") }
        guard isKey(given) else { throw .unauthorized("Invalid API key") }
    }

    /// The token is tried first; a good key hides what was wrong with it, and is then good for some reads only.
    private func checkBearer(_ route: VOPIRoute, _ fields: HTTPFields) throws(VOPIRefusal) {
        let hasKey = fields[.vopiKey].map(isKey) ?? false
        guard let token = fields[.authorization], token.hasPrefix("Bearer ") else {
            guard hasKey else {
                throw .unauthorized("Authentication required. Provide a valid Bearer token or API key.")
            }
            return try checkKeyIsEnough(route)
        }
        do {
            try shop.check(access: String(token.dropFirst(7)))
        } catch {
            guard hasKey else { throw error }
            try checkKeyIsEnough(route)
        }
    }

    private func checkKeyIsEnough(_ route: VOPIRoute) throws(VOPIRefusal) {
        switch route {
        case .read, .unknown: return
        default: break
        }
        throw .unauthorized("User authentication required. Please log in.")
    }

    private func isKey(_ given: String) -> Bool {
        guard let apiKey else { return false }
        return SigningSecret.areEqual(given, apiKey.reveal())
    }
}

extension HTTPField.Name {
    /// The name is a valid token, so the fallback is never taken.
    fileprivate static let vopiKey = HTTPField.Name("x-api-key") ?? .eTag
}
