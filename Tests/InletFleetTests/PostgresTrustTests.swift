import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletFleet

/// Passwords and certificates.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct PostgresTrustTests {
    private static let made = Result { try SecuredCluster() }

    private let cluster: PostgresCluster
    private let authority: FilePath
    private let password = SecuredCluster.password

    init() throws {
        let made = try Self.made.get()
        (cluster, authority) = (made.cluster, made.authority)
    }

    private func connect(
        _ host: String = "localhost", password: String, authority: FilePath? = nil, database: String = "postgres"
    ) throws -> PostgresConnection {
        let url =
            "postgresql://station:\(password)@\(host):\(cluster.port)/\(database)?sslmode=verify-full&sslrootcert="
            + (authority ?? self.authority).string
        return try PostgresConnection(try PostgresAddress(url, allowsUnverified: false), application: "inlet")
    }

    private func error(_ body: () throws -> Void) throws -> FleetError {
        let error = try #require(throws: FleetError.self, performing: body)
        #expect(password.trace(in: "\(error) \(String(reflecting: error))") == nil)
        return error
    }

    @Test func `a server whose authority and name are right is taken`() throws {
        var connection = try connect(password: password.text)
        let (isEncrypted, tls) = (connection.isEncrypted, connection.tlsVersion)
        #expect(isEncrypted && tls?.hasPrefix("TLSv1.") == true)
        #expect(try connection.run("SELECT current_user")[0, 0] == "station")
    }

    @Test func `a certificate of another authority is not trusted`() throws {
        let other = try TLSServer()
        let error = try error { _ = try connect(password: password.text, authority: other.certificate) }
        #expect(error.code == .untrusted)
        #expect(error.advice.contains("sslrootcert=") && error.message.contains("localhost"))
    }

    @Test func `a certificate for another name is not trusted`() throws {
        let error = try error { _ = try connect("127.0.0.1", password: password.text) }
        #expect(error.code == .untrusted)
        #expect(error.message.contains("does not match host name"))
    }

    @Test func `an authority that is not there is named`() throws {
        let error = try error { _ = try connect(password: password.text, authority: "/nowhere/root.pem") }
        #expect(error.code == .untrusted)
        #expect(error.message.contains("/nowhere/root.pem"))
    }

    @Test func `a server without TLS is not trusted when that is asked for`() throws {
        let plain = try PostgresCluster.shared()
        let url = "postgresql://postgres@localhost:\(plain.port)/postgres?sslmode=verify-full&sslrootcert=\(authority)"
        let error = try error {
            _ = try PostgresConnection(try PostgresAddress(url, allowsUnverified: false), application: "inlet")
        }
        #expect(error.code == .untrusted)
        #expect(error.message.contains("offers no TLS"))
    }

    @Test func `a wrong password is refused, and is in no message`() throws {
        let error = try error { _ = try connect(password: password.text + "-not") }
        #expect(error.code == .refused)
        #expect(error.message.contains("station") && error.advice.contains("user and password"))
        let missing = try self.error { _ = try connect(password: "") }
        #expect(missing.code == .refused)
    }

    @Test func `a database that is not there is no outage`() throws {
        let error = try error { _ = try connect(password: password.text, database: "nowhere") }
        #expect(error.code == .argument)
        #expect(error.message.contains("nowhere"))
    }
}

/// A server that lets `station` in by TLS and with its password only. Its certificate is for the name alone.
private struct SecuredCluster: Sendable {
    static let password = Canary("canary-0815-word")

    let cluster: PostgresCluster
    let authority: FilePath
    private let folder: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
        cluster = try PostgresCluster(in: folder.path)
        authority = try cluster.serveTLS(names: ["DNS:localhost"])
        try cluster.run("CREATE ROLE station LOGIN PASSWORD '\(Self.password.text)'")
        try cluster.allow([
            "local all all trust", "host all postgres 127.0.0.1/32 trust",
            "hostssl all station 127.0.0.1/32 scram-sha-256",
        ])
    }
}
