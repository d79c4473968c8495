import Foundation
import InletSandbox
import InletTestSupport
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
            let trusted = try await place.inlet("check")
            #expect(trusted.output.contains("\(front.origin)/sandbox, region us-east-1 answers"), "\(trusted)")
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
                let sent = try await place.inlet("send", place.folder.write(bytes(1000), to: "film.mov").string)
                #expect(sent.ending != .code(0) && sent.output.contains("is not the pinned one"), "\(sent)")
            }
            #expect(sandbox.objects().isEmpty && sandbox.openUploads().isEmpty)
        }
    }
}

/// TLS with a certificate of its own, on a port of this machine, before a server that has none.
private final class TLSFront: Sendable {
    static var isAvailable: Bool {
        ["/usr/bin/openssl", "/usr/bin/python3"].allSatisfy(FileManager.default.isExecutableFile)
    }

    let certificate: FilePath
    let origin: String
    private let process: Process

    private static let script = """
        import socket, ssl, sys, threading
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        door = socket.create_server(("127.0.0.1", 0))
        print(door.getsockname()[1], flush=True)

        def pump(source, target):
            try:
                while data := source.recv(65536):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def serve(client):
            try:
                near = context.wrap_socket(client, server_side=True)
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
            threading.Thread(target=pump, args=(far, near), daemon=True).start()
            pump(near, far)

        while True:
            threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
        """

    init(in place: Place, before port: Int) async throws {
        certificate = place.folder.path.appending("certificate.pem")
        let key = place.folder.path.appending("key.pem")
        let script = try place.folder.write(Self.script.utf8, to: "front.py")
        let made = Process()
        made.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        made.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj",
            "/CN=nas", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key.string, "-out", certificate.string,
        ]
        (made.standardOutput, made.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        try made.run()
        try await eventually("the certificate is made") { !made.isRunning }
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [script.string, certificate.string, key.string, String(port)]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        Leash.hold(process.processIdentifier)
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        origin = "https://127.0.0.1:\(try #require(Int(line.trimmingCharacters(in: .whitespacesAndNewlines))))"
    }

    deinit { process.terminate() }
}
