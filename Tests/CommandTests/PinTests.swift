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
            #expect(untrusted.ending != .code(0) && untrusted.output.contains("needs 'pin:'"), "\(untrusted)")
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
