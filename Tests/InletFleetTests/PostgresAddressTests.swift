import InletCore
import InletTestSupport
import Testing

@testable import InletFleet

@Suite(.enabled(if: PostgresLibrary.version != nil, "needs libpq (apt install libpq5)"))
struct PostgresAddressTests {
    @Test(arguments: [
        ("postgresql://inlet@db.example/inlet?sslmode=verify-full", "db.example:5432"),
        ("host=db.example port=6432 dbname=inlet sslmode=verify-full", "db.example:6432"),
        (
            "postgresql://inlet@db.example,db2.example:6432/inlet?sslmode=verify-full",
            "db.example:5432, db2.example:6432"
        ),
        ("postgresql://inlet@localhost/inlet", "localhost:5432"),
        ("postgresql://inlet@127.0.0.2/inlet?sslmode=disable", "127.0.0.2:5432"),
        ("postgresql://inlet@[::1]:6432/inlet", "[::1]:6432"),
        ("postgresql://inlet@/inlet?host=/run/postgresql", "/run/postgresql"),
        ("postgresql://inlet@db.example/inlet?hostaddr=127.0.0.1", "db.example:5432"),
    ])
    func `a server that proves itself, or is this machine, is accepted`(text: String, display: String) throws {
        let address = try PostgresAddress(text, allowsUnverified: false)
        #expect(address.display == display)
        #expect(address.database == "inlet")
    }

    @Test(arguments: [
        "postgresql://inlet@db.example/inlet", "postgresql://inlet@db.example/inlet?sslmode=require",
        "postgresql://inlet@db.example/inlet?sslmode=verify-ca", "host=db.example sslmode=disable",
        "postgresql://inlet@localhost,db.example/inlet", "postgresql://inlet@localhost/inlet?hostaddr=192.0.2.1",
        "postgresql://inlet@localhost.example/inlet", "postgresql://inlet@127.0.0.1.example/inlet",
    ])
    func `a server that need not prove itself is refused unless that is allowed`(text: String) throws {
        let error = try #require(throws: FleetError.self) { try PostgresAddress(text, allowsUnverified: false) }
        #expect(error.code == .untrusted)
        #expect(error.message.contains("sslmode=verify-full"))
        #expect(throws: Never.self) { try PostgresAddress(text, allowsUnverified: true) }
    }

    @Test(arguments: [
        "canary-0815-word", "postgresql://a:canary-0815-word@db@x/y", "postgresql://a:x@canary-0815-word@db/y",
        "postgresql://a:1/canary-0815-word@db/y", "postgresql://a:canary-0815-word/b@db/y",
        "postgresql://a:canary-0815-word@[db/y", "host=db password=x canary-0815-word=1", "service=canary-0815-word",
        "postgresql://a:canary-0815-word@db/y?sslmod=verify-full",
    ])
    func `a url that cannot be read is refused without repeating it`(text: String) throws {
        let error = try #require(throws: FleetError.self) { try PostgresAddress(text, allowsUnverified: true) }
        #expect(error.code == .argument)
        #expect(error.message.contains("the fleet's url"))
        #expect(Canary("canary-0815-word").trace(in: "\(error) \(String(reflecting: error))") == nil)
    }

    @Test func `an address shows its password to nobody`() throws {
        let text = "postgresql://inlet:canary-0815-word@localhost/inlet"
        let address = try PostgresAddress(text, allowsUnverified: false)
        var dumped = ""
        dump(address, to: &dumped)
        #expect(Canary("canary-0815-word").trace(in: "\(address) \(String(reflecting: address)) \(dumped)") == nil)
        #expect(address.options["password"]?.reveal() == "canary-0815-word")
    }

    @Test func `nothing waits for ever unless the url says so`() throws {
        let address = try PostgresAddress("postgresql://localhost/x", allowsUnverified: false)
        let wanted = ["tcp_user_timeout": "10000", "keepalives": "1", "keepalives_idle": "10", "keepalives_count": "3"]
        for (option, value) in wanted { #expect(address.options[option]?.reveal() == value) }
        #expect(address.patience == .seconds(5))
        let other = try PostgresAddress(
            "postgresql://localhost/x?tcp_user_timeout=2000&connect_timeout=9", allowsUnverified: false)
        #expect(other.options["tcp_user_timeout"]?.reveal() == "2000")
        #expect(other.patience == .seconds(9))
        let endless = try PostgresAddress("postgresql://localhost/x?connect_timeout=0", allowsUnverified: false)
        #expect(endless.patience == .seconds(5))
    }

    @Test(arguments: [
        ("postgresql://localhost/x", "any"), ("postgresql://localhost,127.0.0.1/x", "read-write"),
        ("postgresql://localhost,127.0.0.1/x?target_session_attrs=primary", "primary"),
    ])
    func `of several servers one that can write is looked for`(text: String, wanted: String) throws {
        let address = try PostgresAddress(text, allowsUnverified: false)
        #expect(address.options["target_session_attrs"]?.reveal() ?? "any" == wanted)
    }
}

struct PostgresLibraryTests {
    @Test func `a missing libpq names its package`() throws {
        let error = try #require(throws: FleetError.self) { _ = try PostgresLibrary.open("libpq-of-nobody.so.5") }
        #expect(error.code == .library)
        #expect(error.advice.contains("apt install libpq5"))
        #expect(error.message.contains("libpq-of-nobody.so.5"))
    }

    @Test func `a library without libpq's functions is refused`() throws {
        let error = try #require(throws: FleetError.self) { _ = try PostgresLibrary.open("libc.so.6") }
        #expect(error.code == .library)
        #expect(error.message.contains("it has no function PQ"))
    }
}
