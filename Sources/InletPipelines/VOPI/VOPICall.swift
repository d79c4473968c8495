internal import InletCore
internal import InletTransfer

/// One call, before it is put on the wire: what, where, and how its answer is to be read.
struct VOPICall: Sendable {
    var method: String
    /// Below the server's address.
    var path: String
    var query: [(name: String, value: String)] = []
    /// Sent as JSON. Without one there is no Content-Type either: the server takes an empty body with one for a fault.
    var body: VOPIValue?
    var endpoint: VOPIEndpoint
    /// For error texts: `creating a job`.
    var what: String
    /// Whether it goes without credentials.
    var isOpen = false
    var answerLimit = 1 << 20
    var deadline = Duration.seconds(30)

    init(_ method: String, _ path: String, _ endpoint: VOPIEndpoint = .read, _ what: String) {
        self.method = method
        self.path = path
        self.endpoint = endpoint
        self.what = what
    }

    /// A call about one job.
    /// - Throws: `.badRequest` for an id that no server gives, and that would turn the path into another one.
    init(
        _ method: String, job id: String, _ rest: String = "", _ endpoint: VOPIEndpoint = .read, _ what: String
    ) throws(DeliveryError) {
        try Self.check(id, "job id")
        self.init(method, "api/v1/jobs/\(id)\(rest)", endpoint, "\(what) \(id)")
    }

    func request(at base: HTTPURL, credential: (name: String, value: String)?) -> HTTPRequest {
        var url = base.appending(path: path)
        for item in query { url = url.appending(queryItem: item.name, item.value) }
        var headers: HTTPFields = [("Accept", "application/json")]
        if let credential { headers.append(credential) }
        if body != nil { headers.append(("Content-Type", "application/json")) }
        return HTTPRequest(
            method, url, headers: headers, body: body.map { .bytes($0.json) } ?? .none, answerLimit: answerLimit,
            answerDeadline: deadline, stallTimeout: deadline)
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
}
