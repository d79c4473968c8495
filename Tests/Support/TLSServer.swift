package import Foundation
package import SystemPackage

/// `openssl s_server -www` with a self-signed certificate of its own; it ends with the last reference.
package final class TLSServer {
    package let certificate: FilePath
    package let port: Int
    private let directory: TemporaryDirectory
    private let server: OpenSSLServer

    package init(_ options: [String] = []) throws {
        directory = try TemporaryDirectory()
        certificate = directory.path.appending("cert.pem")
        let key = directory.path.appending("key.pem").string
        let maker = Self.openssl([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=inlet test", "-keyout", key,
            "-out", certificate.string, "-addext", "subjectAltName=IP:127.0.0.1",
        ])
        try maker.run()
        maker.waitUntilExit()
        server = try OpenSSLServer(
            ["s_server", "-accept", "127.0.0.1:0", "-www", "-cert", certificate.string, "-key", key] + options)
        port = try server.port()
    }

    package static let path = "/usr/bin/openssl"

    package static func openssl(_ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        return process
    }
}

/// The process, which ends however its owner's making fails.
private final class OpenSSLServer {
    private let process: Process
    private let output = Pipe()

    init(_ arguments: [String]) throws {
        process = TLSServer.openssl(arguments)
        process.standardOutput = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        Leash.hold(process.processIdentifier)
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    /// Waits until it says where it listens, or ends.
    func port() throws -> Int {
        var text = ""
        while !text.contains("ACCEPT 127.0.0.1:") || !text.hasSuffix("\n") {
            let piece = output.fileHandleForReading.availableData
            if piece.isEmpty { break }
            text += String(decoding: piece, as: UTF8.self)
        }
        let line = text.split(separator: "\n").first { $0.contains("ACCEPT 127.0.0.1:") } ?? ""
        guard let port = line.split(separator: ":").last.flatMap({ Int($0) }) else { throw CocoaError(.executableLoad) }
        return port
    }
}
