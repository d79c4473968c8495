import Foundation
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

/// A store of one's own whose certificate nobody has signed.
@Suite(.enabled(if: TLSFront.isAvailable, "needs openssl and python3")) struct PinTests {
    @Test func `check prints the key of a server that is not trusted, and with it the server is`() async throws {
        try await withS3 { place, sandbox in
            let front = try await TLSFront(in: place, before: try await sandbox.port())
            try place.configure(replacing: "http://127.0.0.1:\(try await sandbox.port())", with: front.origin)
            let untrusted = try await place.inlet("check")
            let found = try #require(untrusted.output.firstMatch(of: /sha256\/\/[A-Za-z0-9+\/]{43}=/), "\(untrusted)")
            #expect(untrusted.ending != .code(0) && untrusted.output.contains("set 'pin:'"), "\(untrusted)")
            try place.put("a.bin", bytes(1000))
            try place.configure(replacing: "type: s3,", with: "type: s3, pin: \"\(found.output)\",")
            try await place.inlet("check", says: "\(front.origin)/sandbox, region us-east-1 answers")
            let agent = try await place.run()
            try await agent.line("job.finished") { $0.isAbout("a.bin") && $0["state"] == "delivered" }
            #expect(try sandbox.objects().map { try place.content($0.path) } == [bytes(1000)])
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `a server with another key than the pinned one gets nothing, whoever has signed it`() async throws {
        try await withS3 { place, sandbox in
            let front = try await TLSFront(in: place, before: try await sandbox.port())
            try place.configure(replacing: "http://127.0.0.1:\(try await sandbox.port())", with: front.origin)
            let plain = String(decoding: try place.content(place.configuration), as: UTF8.self)
            let other = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
            for more in ["", " ca_file: \(front.certificate),"] {
                try place.configure(text: plain.replacing("type: s3,", with: "type: s3, pin: \"\(other)\",\(more)"))
                let sent = try await place.inlet(
                    "send", place.folder.write(bytes(1000), to: "film.mov").string, says: "is not the pinned one")
                #expect(sent.ending != .code(0), "\(sent)")
            }
            #expect(sandbox.objects().isEmpty && sandbox.openUploads().isEmpty)
        }
    }
}

/// `ca_file` of every type of destination, from the configuration to the connection.
@Suite(.enabled(if: TLSFront.isAvailable, "needs openssl and python3")) struct CertificateFileTests {
    private static let types = [
        "r2": "api: \"URL\", api_key: canary-1",
        "s3": "endpoint: \"URL\", region: us-east-1, bucket: media, access_key: AKID, secret_key: canary-1",
        "gighive": "url: \"URL\", user: me, password: canary-1",
        "vopi": "url: \"URL\", results: pictures, auth: { api_key: canary-1 }",
        "roboscope": "url: \"URL/api/v1\", token: canary-1, storage: shelf",
    ]

    @Test(arguments: types.keys.sorted())
    func `a server is asked with credentials only where its certificate is trusted`(_ type: String) async throws {
        let asked = Mutex(0)
        let server = try ScriptedServer { connection in
            while true {
                let isFar = try !connection.readRequest().headers.values.contains("canary-2")
                asked.withLock { $0 += isFar ? 1 : 0 }
                try connection.answer("403 Forbidden", "no")
            }
        }
        let place = try Place()
        let front = try await TLSFront(in: place, before: Int(server.port))
        let keys = try #require(Self.types[type]).replacing("URL", with: front.origin)
        func configure(_ more: String) throws {
            try place.configure(
                text: """
                    state_dir: state
                    destinations:
                      far: { type: \(type), \(keys)\(more) }
                      shelf: { type: r2, api: "http://127.0.0.1:\(server.port)", api_key: canary-2 }
                    watch: [{ path: drop }]
                    routes: [{ name: all, to: far }]

                    """)
        }
        try configure("")
        try await place.inlet("check", says: "certificate")
        #expect(asked.withLock { $0 } == 0)
        try configure(", ca_file: \(front.certificate)")
        let trusted = try await place.inlet("check")
        #expect(asked.withLock { $0 } > 0 && !trusted.output.contains("certificate"), "\(trusted)")
    }
}

/// What a machine's own rules for TLS may still allow.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path), "needs openssl")
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
    .timeLimit(.minutes(15)),
    .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path), "needs openssl")
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
        #expect(agent.errors.contains("anyone who can read that file can decrypt all traffic"))
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
