import InletCore
import InletLinux
import InletTestSupport
import Testing

@testable import InletFleet

/// Servers that are silent, die, are not there, or cannot write.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct PostgresOutageTests {
    private func connect(_ url: String) throws -> PostgresConnection {
        try PostgresConnection(try PostgresAddress(url, allowsUnverified: false), application: "inlet")
    }

    private func error(_ body: () throws -> Void) throws -> FleetError {
        try #require(throws: FleetError.self, performing: body)
    }

    @Test func `a server that takes connections and says nothing is away`() throws {
        let server = try ScriptedServer { $0.waitForEnd() }
        let error = try error { _ = try connect("postgresql://a@127.0.0.1:\(server.port)/x?connect_timeout=1") }
        #expect(error.isAway && error.message.contains("no answer within"))
    }

    @Test func `a server that speaks another protocol is away`() throws {
        let server = try ScriptedServer { try $0.write("HTTP/1.1 400 Bad Request\r\n\r\n") }
        #expect(try error { _ = try connect("postgresql://a@127.0.0.1:\(server.port)/x") }.isAway)
    }

    @Test func `a refused connection says where and why`() throws {
        let proxy = try ChaosProxy(to: 1)
        proxy.close()
        let error = try error { _ = try connect("postgresql://a:canary-0815-word@127.0.0.1:\(proxy.port)/x") }
        #expect(error.message == "cannot reach 127.0.0.1:\(proxy.port) (Connection refused)")
        #expect(error.isAway)
    }

    @Test(arguments: [LineFault.stall(.answer, after: 8192), .stall(.request, after: 8192)])
    func `a call ends at its deadline when the line goes silent`(fault: LineFault) throws {
        let cluster = try PostgresCluster.shared()
        let proxy = try ChaosProxy(to: cluster.port)
        proxy.add(fault)
        var connection = try connect("postgresql://postgres@127.0.0.1:\(proxy.port)/postgres")
        let much = [UInt8](repeating: 1, count: 16 << 20)
        let error = try error {
            _ = try connection.run("SELECT $1", [.bytes(much)], within: .milliseconds(500))
        }
        #expect(error.isAway && error.message.contains("did not answer a statement within 0.5 seconds"))
        let isUsable = connection.isUsable
        #expect(!isUsable)
    }

    @Test func `a statement that lasts ends at its deadline, and its answer is no other call's`() throws {
        var connection = try connect(PostgresCluster.shared().url)
        #expect(try error { _ = try connection.run("SELECT pg_sleep(600)", within: .milliseconds(300)) }.isAway)
        #expect(try error { _ = try connection.run("SELECT 1") }.message.contains("the connection is closed"))
    }

    @Test func `a call whose server is killed fails, and a new connection works after the restart`() async throws {
        let folder = try TemporaryDirectory()
        let cluster = try PostgresCluster(in: folder.path)
        let (url, pool) = (cluster.url, BlockingPool(name: "test", threads: 1))
        async let outcome = pool.run { () -> FleetError.Code? in
            PostgresConnectionTests.code {
                let address = try PostgresAddress(url, allowsUnverified: false)
                var connection = try PostgresConnection(address, application: "victim")
                _ = try connection.run("SELECT pg_sleep(600)", within: .seconds(600))
            }
        }
        try await eventually("the call is there") {
            try cluster.run("SELECT FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active'").count
                == 1
        }
        cluster.stop(immediate: true)
        #expect(await outcome == .away)
        #expect(try error { _ = try connect(url) }.isAway)
        try cluster.start()
        #expect(try cluster.run("SELECT 1") == [["1"]])
    }

    @Test func `a connection that was idle over a restart is away once, and then unusable`() throws {
        let folder = try TemporaryDirectory()
        let cluster = try PostgresCluster(in: folder.path)
        var connection = try connect(cluster.url)
        cluster.stop()
        try cluster.start()
        #expect(try error { _ = try connection.run("SELECT 1") }.isAway)
        let isUsable = connection.isUsable
        #expect(!isUsable)
    }

    @Test func `a server that only reads is away, and of several one that writes is taken`() throws {
        let folder = try TemporaryDirectory()
        let reader = try PostgresCluster(in: folder.path, settings: ["default_transaction_read_only": "on"])
        var connection = try connect(reader.url)
        let refused = try error { _ = try connection.run("CREATE TABLE t (a int)") }
        #expect(refused.isAway && refused.message.contains("read-only transaction"))
        let writer = try PostgresCluster.shared()
        let gone = try ChaosProxy(to: 1)
        gone.close()
        let hosts = [gone.port, UInt16(reader.port), UInt16(writer.port)].map { "127.0.0.1:\($0)" }
        var chosen = try connect("postgresql://postgres@\(hosts.joined(separator: ","))/postgres")
        #expect(try chosen.run("SELECT current_setting('port')")[0, 0] == String(writer.port))
        #expect(
            try error { _ = try connect("postgresql://postgres@\(hosts[0]),\(hosts[1])/postgres") }.message
                .contains("read-only"))
    }

    @Test(.enabled(if: PoolerProcess.isThere, Comment(rawValue: PoolerProcess.reason)))
    func `pgbouncer in transaction mode may give each call another server process`() throws {
        let folder = try TemporaryDirectory()
        let cluster = try PostgresCluster.shared()
        let pooler = try PoolerProcess(before: cluster, in: folder.path, connections: 1)
        var one = try connect(pooler.url(user: "postgres"))
        var other = try connect(pooler.url(user: "postgres"))
        for number in 0..<3 {
            let value = PostgresValue.bytes([0, UInt8(number)])
            #expect(try one.run("SELECT $1, pg_backend_pid()", [value]).bytes(0, 0) == [0, UInt8(number)])
            #expect(try other.run("SELECT $1::text", [.text("x")])[0, 0] == "x")
        }
        #expect(try error { _ = try one.run("SELECT 1 / 0") }.code == .fault)
        let isUsable = one.isUsable
        #expect(isUsable)
        let stranger = try error { _ = try connect(pooler.url(user: "stranger")) }
        #expect(stranger.code == .refused)
        var streamed = 0
        try one.stream("SELECT generate_series(1, 100)", []) { _ in streamed += 1 }
        #expect(streamed == 100)
    }
}
