import Foundation
import FoundationNetworking
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage

/// Runs a sandbox on a folder of its own (or `directory`) while `body` talks to it over real sockets.
func withSandbox(
    directory: FilePath? = nil, apiKey: Secret? = nil, faults: Fault..., urlLifetime: Duration = .seconds(3600),
    port: Int = 0, _ body: @Sendable @escaping (SpiralSandbox, SandboxClient) async throws -> Void
) async throws {
    let folder = try TemporaryDirectory()
    let sandbox = try SpiralSandbox(
        directory: directory ?? folder.path, apiKey: apiKey, faults: FaultPlan(faults), urlLifetime: urlLifetime,
        port: port)
    try await whileServing({ try await sandbox.run() }) {
        let client = SandboxClient(port: try await sandbox.port())
        try await body(sandbox, client)
    }
}

enum Dialect: String, CaseIterable, Sendable {
    case seed
    case r2
    case v1

    var folder: String { self == .v1 ? "v1" : "r2" }
}

/// What a small, honest client of the service does.
struct SandboxClient: Sendable {
    struct Answer {
        var status: Int
        var headers: [String: String]
        var body: Data

        var text: String { String(decoding: body, as: UTF8.self) }
        var json: [String: Any] { (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] ?? [:] }
    }

    struct Upload {
        var id: String
        var key: String
        var urls: [String]
        var numbers: [Int]
    }

    let port: Int
    let session: URLSession
    var origin: String { "http://127.0.0.1:\(port)" }

    init(port: Int) {
        self.port = port
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 16
        session = URLSession(configuration: configuration, delegate: NoRedirects(), delegateQueue: nil)
    }

    func send(
        _ method: String, _ url: String, _ body: Data? = nil, headers: [String: String] = [:], within: Double = 120
    ) async throws -> Answer {
        guard let address = URL(string: url) else { throw URLError(.badURL) }
        var request = URLRequest(url: address, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: within)
        request.httpMethod = method
        request.httpBody = body
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        let (data, response) = try await session.data(for: request)
        guard let http = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        let pairs = http.allHeaderFields.map { ("\($0.key)".lowercased(), "\($0.value)") }
        return Answer(status: http.statusCode, headers: Dictionary(pairs) { $1 }, body: data)
    }

    func post(_ path: String, _ body: [String: Any], headers: [String: String] = [:], within: Double = 120) async throws
        -> Answer
    {
        let data = try JSONSerialization.data(withJSONObject: body)
        return try await send(
            "POST", origin + path, data, headers: headers.merging(["Content-Type": "application/json"]) { $1 },
            within: within)
    }

    func create(_ dialect: Dialect, key: String, parts: Int) async throws -> Upload {
        let count = dialect == .seed ? "part_count" : "parts"
        let answer = try await post(
            "/\(dialect.folder)/multipart/create",
            ["key": key, count: parts].merging(dialect == .seed ? [:] : ["content_type": "video/quicktime"]) { $1 })
        let list = answer.json[dialect == .seed ? "parts" : "part_urls"] as? [[String: Any]] ?? []
        guard answer.status == 200, let id = answer.json["upload_id"] as? String else {
            throw Refused(answer: "create: \(answer.status) \(answer.text)")
        }
        return Upload(
            id: id, key: key, urls: list.compactMap { $0["url"] as? String },
            numbers: list.compactMap { $0["part_number"] as? Int })
    }

    func complete(_ dialect: Dialect, _ upload: Upload, etags: [(Int, String)]) async throws -> Answer {
        try await post(
            "/\(dialect.folder)/multipart/complete",
            [
                "key": upload.key, "upload_id": upload.id,
                "parts": etags.map { ["part_number": $0.0, "etag": $0.1] as [String: Any] },
            ])
    }

    /// Sends `parts` and completes; the answer is that of `complete`.
    func upload(_ dialect: Dialect, key: String, _ parts: [Data]) async throws -> Answer {
        let upload = try await create(dialect, key: key, parts: parts.count)
        var etags: [(Int, String)] = []
        for (index, part) in parts.enumerated() {
            let answer = try await send("PUT", upload.urls[index], part)
            etags.append((index + 1, answer.headers["etag"] ?? ""))
        }
        return try await complete(dialect, upload, etags: etags)
    }
}

extension SandboxClient {
    /// curl's exit status: 28 out of time, 52 no answer, 55 and 56 connection lost. For what `URLSession` does not show
    /// at once: connections that end without an answer.
    static func curl(_ arguments: String...) async throws -> Int32 { try await curl(arguments) }

    static func curl(_ arguments: [String]) async throws -> Int32 {
        let curl = Process()
        curl.executableURL = URL(fileURLWithPath: "/usr/bin/curl")
        // Whatever proxy this machine's user has.
        curl.arguments = ["-s", "-N", "--noproxy", "*"]
        curl.arguments? += (arguments.contains("-o") ? [] : ["-o", "/dev/null"]) + arguments
        let ended = AsyncStream.makeStream(of: Never.self)
        curl.terminationHandler = { _ in ended.continuation.finish() }
        try curl.run()
        for await _ in ended.stream {}
        return curl.terminationStatus
    }
}

struct Refused: Error { var answer: String }

/// Redirects are answers here, not instructions.
final class NoRedirects: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) { completionHandler(nil) }
}

/// Bytes that differ from seed to seed, and quickly.
func noise(_ count: Int, seed: UInt64) -> Data {
    var generator = SeededGenerator(seed: seed)
    var data = Data(capacity: count + 8)
    while data.count < count { withUnsafeBytes(of: generator.next()) { data.append(contentsOf: $0) } }
    return data.prefix(count)
}

func md5(_ data: Data) -> String { MD5.bytes(of: data).hex }
func sha256(_ data: Data) -> String { SHA256.bytes(of: data).hex }
func content(of path: FilePath) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path.string)) }
