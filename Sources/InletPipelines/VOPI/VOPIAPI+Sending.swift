internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Who we are to the server; one header, never two.
enum VOPILogin: Sendable {
    case key(Secret)
    /// Renewed here, and kept.
    case own(VOPITokens)
    /// Renewed by the agent.
    case borrowed(@Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret)

    /// What goes with a request now.
    func credential() async throws(DeliveryError) -> Secret {
        switch self {
        case .key(let key): key
        case .own(let tokens): try await tokens.access()
        case .borrowed(let lend): try await lend(nil)
        }
    }

    /// Another credential after the server refused `rejected`; nil when there is none.
    func credential(after rejected: Secret) async throws(DeliveryError) -> Secret? {
        switch self {
        case .key: return nil
        case .own(let tokens): return try await tokens.access(after: rejected)
        case .borrowed(let lend):
            let other = try await lend(rejected)
            return other == rejected ? nil : other
        }
    }

    func header(_ credential: Secret) -> (name: String, value: String) {
        if case .key = self { return ("x-api-key", credential.reveal()) }
        return ("Authorization", "Bearer " + credential.reveal())
    }

    /// What a person can do when the server refuses us.
    func hint(_ said: VOPISaid) -> String {
        switch self {
        case .key where said.code == "USAGE_LIMIT_EXCEEDED": "this API key has no uses left; give another"
        case .key where said.message.contains("User authentication required"):
            "this server takes no API keys; set auth: { refresh_token_file: ... }"
        case .key: "check the api_key"
        case .own, .borrowed:
            said.message.contains("Missing API key")
                ? "this server takes API keys only; set auth: { api_key: ... }"
                : "log in again, and put the new refresh token into refresh_token_file"
        }
    }
}

extension VOPIAPI {
    /// Sends `call` with our credentials, and once more with renewed ones where that may help.
    func send(_ call: VOPICall) async throws(DeliveryError) -> VOPIAnswer {
        let what = "\(call.what) at \(settings.url.redacted)"
        var credential = call.isOpen ? nil : try await login.credential()
        var response = try await exchange(call, credential)
        var verdict = VOPIVerdict(response, at: call.endpoint)
        if verdict == .renew, let used = credential, let other = try await login.credential(after: used) {
            credential = other
            response = try await exchange(call, other)
            verdict = VOPIVerdict(response, at: call.endpoint)
        }
        guard verdict == .done else {
            if verdict == .credentials, case .own(let tokens) = login { tokens.doubt() }
            let hint = login.hint(VOPISaid(response))
            throw verdict.error(response, what, hint: hint, now: .now)
        }
        return VOPIAnswer(response, what)
    }

    /// The answer as it is, whatever its status.
    func exchange(_ call: VOPICall, _ credential: Secret?) async throws(DeliveryError) -> HTTPResponse {
        do {
            return try await client.send(
                call.request(at: settings.url, credential: credential.map { login.header($0) }))
        } catch {
            throw DeliveryError(error)
        }
    }
}
