import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// What a machine's own rules for TLS may still allow.
@Suite(
    .timeLimit(.minutes(4)), .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path), "needs openssl")
)
struct OldTLSTests {
    /// In a process of its own: the library takes the machine's rules once, and would refuse old versions by these alone.
    private static let milder = """
        openssl_conf = all
        [all]
        ssl_conf = ssl
        [ssl]
        system_default = mild
        [mild]
        MinProtocol = TLSv1
        CipherString = DEFAULT@SECLEVEL=0
        """

    @Test(arguments: ["-tls1", "-tls1_1", "-tls1_2", "-tls1_3"])
    func `a server that speaks nothing newer than TLS 1.1 is not spoken to, whatever the machine allows`(
        _ version: String
    ) async throws {
        let server = try TLSServer([version, "-cipher", "DEFAULT@SECLEVEL=0"])
        let place = try Place(server)
        let rules = try place.folder.write(Self.milder.utf8, to: "openssl.cnf")
        let check = try await place.inlet(["check"], environment: ["OPENSSL_CONF": rules.string])
        let isOld = ["-tls1", "-tls1_1"].contains(version)
        #expect(check.output.contains("protocol version") == isOld, "\(check)")
        // The page of a server that is no store.
        #expect(check.output.contains("the answer is not the XML") != isOld, "\(check)")
    }
}

/// The keys by which a record of what was sent can be read.
@Suite(
    .timeLimit(.minutes(4)), .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path), "needs openssl")
)
struct SessionKeyTests {
    @Test func `a variable that asks libraries for the keys of connections is not obeyed`() async throws {
        let server = try TLSServer()
        let place = try Place(server)
        let keys = place.folder.path.appending("keys")
        let check = try await place.inlet(["check"], environment: ["SSLKEYLOGFILE": keys.string])
        // It was spoken to.
        #expect(check.output.contains("the answer is not the XML"), "\(check)")
        #expect(!place.exists(keys))
    }

    @Test func `a key of the configuration asks for them, and is warned of`() async throws {
        let server = try TLSServer()
        let place = try Place(server, top: ["tls_key_log: keys/log"])
        try place.folder.makeDirectory("keys")
        let keys = place.folder.path.pushing("keys/log")
        let other = place.folder.path.appending("other")
        let agent = try await place.run(environment: ["SSLKEYLOGFILE": other.string])
        try place.put("a.bin", bytes(10))
        try await agent.wait("keys are logged") {
            (try? place.content(keys))?.range(of: Data("CLIENT_".utf8)) != nil
        }
        #expect(agent.errors.contains("whoever reads this file can read all that was sent"))
        #expect(!place.exists(other))
        let attributes = try FileManager.default.attributesOfItem(atPath: keys.string)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(try await agent.stop() == .code(0))
    }
}

extension Place {
    /// One whose destination is a TLS server that is trusted, and no store.
    fileprivate convenience init(_ server: TLSServer, top: [String] = []) throws {
        try self.init(
            destination: "type: s3, endpoint: \"https://127.0.0.1:\(server.port)\", region: us-east-1, bucket: media, "
                + "access_key: AKID, secret_key: canary, ca_file: \"\(server.certificate)\"", top: top)
    }
}
