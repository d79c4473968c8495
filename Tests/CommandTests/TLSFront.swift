import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// TLS with a certificate of its own, on a port of this machine, before a server that has none.
final class TLSFront: Sendable {
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
