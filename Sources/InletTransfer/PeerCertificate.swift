package import InletCore
internal import InletLinux

/// The certificate that a server shows, trusted or not, in words for people who look for a fault.
package struct PeerCertificate: Sendable, Equatable {
    /// As libcurl's TLS library words them: `CN = storage.example.com`.
    package var subject: String
    package var issuer: String
    /// The dates of its life; nil where one cannot be read.
    package var begins: WallTime?
    package var expires: WallTime?
    /// `TLSv1.3`; nil where libcurl does not say.
    package var version: String?

    /// - Parameter fact: the value that libcurl gives for a name such as `Issuer:`.
    init?(version: String?, fact: (String) -> String?) {
        guard let subject = fact("Subject:"), let issuer = fact("Issuer:") else { return nil }
        (self.subject, self.issuer, self.version) = (subject, issuer, version)
        begins = fact("Start date:").flatMap { WallTime($0, formats: Self.formats) }
        expires = fact("Expire date:").flatMap { WallTime($0, formats: Self.formats) }
    }

    /// OpenSSL's, and that of libcurl's own reader, which other TLS libraries need.
    private static let formats = ["%b %d %H:%M:%S %Y GMT", "%Y-%m-%d %H:%M:%S GMT"]
}

extension HTTPClient {
    /// The certificate of the server at `url`, whatever it is worth; nil without TLS. Nothing is sent to the server.
    ///
    /// - Throws: as `send`.
    package func certificate(of url: HTTPURL) async throws(TransferError) -> PeerCertificate? {
        guard url.scheme == "https" else { return nil }
        var request = HTTPRequest("GET", url)
        request.readsCertificate = true
        return try await send(request).peer
    }

    /// The server's clock minus ours, from the Date of its answer to a request without credentials; nil when the server
    /// does not say. Within a second, and the time of the answer.
    ///
    /// - Throws: as `send`.
    package func clockDifference(at url: HTTPURL) async throws(TransferError) -> Duration? {
        let before = WallTime.now
        guard let date = try await send(HTTPRequest("HEAD", url)).date else { return nil }
        // The server cuts off the fraction of its second, and its answer took a while.
        let half = (WallTime.now - before) / 2
        return date + .milliseconds(500) - (before + half)
    }
}
