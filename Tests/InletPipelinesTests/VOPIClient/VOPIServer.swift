import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage
import Testing

@testable import InletPipelines

/// A loopback server that answers what a test says and keeps what it was asked; it knows nothing of VOPI.
final class VOPIServer: Sendable {
    struct Asked: Sendable {
        var method: String
        /// With its query.
        var target: String
        var headers: [String: String]
        var body: [UInt8]

        var path: String { String(target.prefix { $0 != "?" }) }
        var json: VOPIValue { VOPIValue(body) ?? .null }

        init(_ request: ReceivedRequest) {
            let words = request.line.split(separator: " ").map { String($0) }
            method = words.first ?? ""
            target = words.count > 1 ? words[1] : ""
            headers = request.headers
            body = request.body
        }
    }

    struct Reply: Sendable {
        var status = 200
        var headers: [(String, String)] = [("content-type", "application/json; charset=utf-8")]
        var body = ""
        /// Ends the connection without an answer.
        var isLost = false

        static func json(_ status: Int, _ body: String) -> Reply { Reply(status: status, body: body) }
        static let lost = Reply(isLost: true)
    }

    private final class Book: Sendable {
        private let asked = Mutex<[Asked]>([])

        var all: [Asked] { asked.withLock { $0 } }

        /// - Returns: how many came before.
        func add(_ one: Asked) -> Int {
            asked.withLock { all in
                all.append(one)
                return all.count - 1
            }
        }
    }

    private let server: ScriptedServer
    private let book = Book()

    /// - Parameter answer: is told how many requests came before; runs on the connection's thread.
    init(_ answer: @escaping @Sendable (Asked, Int) throws -> Reply) throws {
        let book = book
        server = try ScriptedServer { connection in
            while true {
                let asked = Asked(try connection.readRequest())
                let reply = try answer(asked, book.add(asked))
                if reply.isLost { return }
                let headers = reply.headers.map { "\($0.0): \($0.1)\r\n" }.joined()
                try connection.answer("\(reply.status) x", headers: headers, reply.body)
            }
        }
    }

    /// Everything so far, in the order of arrival.
    var asked: [Asked] { book.all }

    var refreshes: [Asked] { asked.filter { $0.path == "/api/v1/auth/refresh" } }

    var address: String { "http://127.0.0.1:\(server.port)" }
}

/// A client of a `VOPIServer`, with a state folder and a login of its own.
final class VOPIClientPlace: Sendable {
    static let seed = "seed-canary-1"

    let server: VOPIServer
    let folder: TemporaryDirectory
    let client = HTTPClient(userAgent: "inlet-tests/1")
    private let pool = BlockingPool(name: "vopi", threads: 2)

    init(_ answer: @escaping @Sendable (VOPIServer.Asked, Int) throws -> VOPIServer.Reply) throws {
        server = try VOPIServer(answer)
        folder = try TemporaryDirectory()
        try folder.write(Self.seed.utf8, to: "seed")
    }

    deinit { client.shutdown() }

    var tokens: FilePath { folder.path.appending("tokens") }

    func url() throws -> HTTPURL { try HTTPURL(server.address, rules: .configured(allowHTTP: false)) }

    func settings(key: String? = nil, _ more: [String: ConfigValue] = [:]) throws -> VOPISettings {
        let auth: [String: ConfigValue] =
            key.map { ["api_key": .secret(Secret($0))] }
            ?? ["refresh_token_file": .string(folder.path.appending("seed").string)]
        let values: [String: ConfigValue] = [
            "url": .string(server.address), "results": .string("/results"), "auth": .section(section(auth)),
        ]
        return try VOPISettings(section(values.merging(more) { $1 }))
    }

    /// With an API key, or else with tokens.
    func api(key: String? = nil) throws -> VOPIAPI {
        VOPIAPI(try settings(key: key), name: "here", client: client, pool: pool, tokens: tokens)
    }

    func store() -> VOPITokenStore {
        VOPITokenStore(folder: tokens, name: "here", seed: folder.path.appending("seed"), pool: pool)
    }

    /// A login with a clock of the test's own.
    func login(_ clock: HandClock = HandClock()) throws -> VOPITokens {
        VOPITokens(server: try url(), client: client, store: store(), now: { clock.now })
    }

    /// A login whose pair on the disk is as old as `age`, and the clock that it goes by.
    func login(aged age: Duration) async throws -> (VOPITokens, HandClock) {
        let clock = HandClock()
        try await keep(age: age, clock: clock)
        return (try login(clock), clock)
    }

    /// Puts a pair on the disk that is as old as `age`.
    func keep(
        access: String = "access-0", refresh: String = "refresh-0", age: Duration = .zero,
        seed: String = VOPIClientPlace.seed,
        clock: HandClock = HandClock()
    ) async throws {
        try await store().keep(
            VOPITokenPair(
                server: try url().redacted, accessToken: Secret(access), refreshToken: Secret(refresh),
                life: .seconds(900), obtainedAt: clock.now - age, seed: VOPITokenStore.digest(of: Secret(seed))))
    }
}

extension WallTime {
    fileprivate static func - (time: WallTime, duration: Duration) -> WallTime {
        WallTime(milliseconds: time.milliseconds - duration.milliseconds)
    }
}

/// The error of a call that must fail.
func failure<Value>(_ body: () async throws(DeliveryError) -> Value) async -> DeliveryError? {
    do throws(DeliveryError) {
        _ = try await body()
        return nil
    } catch {
        return error
    }
}
