internal import InletCore
internal import InletLinux
internal import InletTransfer

extension VOPIAPI {
    func request(
        _ method: String, _ path: String, query: HTTPFields = [], body: VOPIValue? = nil, limit: Int = 1 << 20,
        patience: Duration = .seconds(30)
    ) -> HTTPRequest {
        service.request(method, path, query: query, json: body?.plain.text, limit: limit, patience: patience)
    }

    /// A request about one job.
    /// - Throws: `.badRequest` for an id that no server gives, and that would turn the path into another one.
    func request(
        _ method: String, job id: String, _ rest: String = "", query: HTTPFields = [], limit: Int = 1 << 20,
        patience: Duration = .seconds(30)
    ) throws(DeliveryError) -> HTTPRequest {
        try Self.check(id, "job id")
        return request(method, "api/v1/jobs/\(id)\(rest)", query: query, limit: limit, patience: patience)
    }

    /// What the server takes in a path: `[A-Za-z0-9_.-]+`, and no dots alone, which would name the folder above.
    static func check(_ text: String, _ what: String) throws(DeliveryError) {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "-"):
                true
            default: false
            }
        }
        guard isPlain, (1...200).contains(text.utf8.count), text.contains(where: { $0 != "." }) else {
            let shown = DisplayText.escape(String(text.prefix(60)))
            throw DeliveryError(
                .giveUp, .badRequest, "'\(shown)' is no \(what): it takes letters, digits, '_', '.' and '-'")
        }
    }

    /// The answer to a call that succeeded.
    /// - Parameter what: for error texts: `creating a job`.
    func send(
        _ request: HTTPRequest, _ endpoint: VOPIEndpoint, _ what: String
    ) async throws(DeliveryError) -> VOPIAnswer {
        let response = try await service.send(request) { refusal(VOPIVerdict($0, at: endpoint), $0, what) }
        return VOPIAnswer(response, "\(what) at \(settings.url.redacted)")
    }

    /// What an answer that ends a call means. A login that is refused is looked at again before the next one.
    func refusal(_ verdict: VOPIVerdict, _ response: HTTPResponse, _ what: String) -> DeliveryError {
        if verdict == .credentials { tokens?.doubt() }
        return verdict.error(
            response, "\(what) at \(settings.url.redacted)", hint: hint(VOPISaid(response)), now: .now)
    }

    /// What a person can do when the server refuses us.
    private func hint(_ said: VOPISaid) -> String {
        if case .tokens = service.login {
            return said.message.contains("Missing API key")
                ? "this server takes API keys only; set auth: { api_key: ... }"
                : "log in again, and put the new refresh token into refresh_token_file"
        }
        if said.code == "USAGE_LIMIT_EXCEEDED" { return "this API key has no uses left; give another" }
        return said.message.contains("User authentication required")
            ? "this server takes no API keys; set auth: { refresh_token_file: ... }" : "check the api_key"
    }
}
