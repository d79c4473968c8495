import CCurl
package import InletCore
import InletLinux

/// Why a request got no usable answer. An answer with an error status is not a `TransferError`: it is returned.
package struct TransferError: Error, Sendable, Equatable, CustomStringConvertible {
    package var code: ErrorCode
    /// A sentence for a person: the URL without its query, the fault, the remedy. Holds no secrets.
    package var reason: String
    /// Whether the other side was unreachable, so that any other request to it would fail too.
    package var isOutage: Bool

    package init(_ code: ErrorCode, _ reason: String, isOutage: Bool) {
        self.code = code
        self.reason = reason
        self.isOutage = isOutage
    }

    package var description: String { "\(reason) [\(code.rawValue)]" }
}

/// The agent's meaning of every libcurl result that can occur here.
extension TransferError {
    /// The failure of a request named `label`; `answered` tells whether a part of the answer had arrived.
    init(_ code: CURLcode, _ label: String, detail: String, answered: Bool) {
        if Self.mayBeShortage.contains(code), let shortage = SystemError.shortage() {
            self.init(.outOfResources, "\(label): \(shortage)", isOutage: true)
            return
        }
        let row = Self.table.first { $0.codes.contains(code) } ?? Self.unknown
        let cause = DisplayText.escape(detail)
        let remedy = row.remedy.isEmpty ? "" : "; \(row.remedy)"
        self.init(
            row.code, "\(label): \(row.what) (\(cause), curl \(code.rawValue))\(remedy)",
            isOutage: row.isOutage ?? !answered)
    }

    /// libcurl's reports when it lacks descriptors for a socket or a file.
    private static let mayBeShortage: [CURLcode] = [
        CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CONNECT_ERROR, CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT,
    ]

    /// `isOutage`: nil = unless a part of the answer had arrived.
    private typealias Row = (codes: [CURLcode], code: ErrorCode, isOutage: Bool?, what: String, remedy: String)

    private static let unknown: Row = ([], .internalFault, false, "the transfer failed", "")

    private static let table: [Row] = [
        (
            [CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY], .nameNotFound, true,
            "unknown host name", "check its spelling and this machine's DNS"
        ),
        (
            [CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY], .connectFailed, true,
            "no connection", "check that the server runs and that no firewall blocks it"
        ),
        // libcurl itself keeps only one time limit, the one for connecting.
        (
            [CURLE_OPERATION_TIMEDOUT], .timedOut, true, "no connection within the time limit",
            "check that the server runs and that no firewall blocks it"
        ),
        (
            [CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS],
            .tlsFailed, true, "the server's certificate is not trusted",
            "check its name and dates and this machine's clock, or set ca_file to its authority's certificate"
        ),
        (
            [CURLE_SSL_PINNEDPUBKEYNOTMATCH], .tlsFailed, true,
            "the server's public key is not the pinned one",
            "if its key was changed intentionally, set the pin that 'inlet check' prints"
        ),
        (
            [CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE], .tlsFailed, true,
            "cannot read the trusted certificates", "check that ca_file is a readable PEM file"
        ),
        (
            [CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_ENGINE_INITFAILED],
            .tlsFailed, true, "no TLS connection",
            "check that the port speaks TLS 1.2 or later"
        ),
        (
            [
                CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_SEND_FAIL_REWIND,
            ],
            .connectionLost, nil, "the connection was lost", ""
        ),
        (
            [
                CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_HTTP2,
                CURLE_HTTP2_STREAM, CURLE_BAD_FUNCTION_ARGUMENT,
            ],
            .badAnswer, false, "the answer is not HTTP/1.1",
            "check that the URL leads to the service, with https:// where its port speaks TLS"
        ),
        // 7.81 to 7.88 report a header line beyond libcurl's own 100 KB as a lack of memory.
        (
            [CURLE_OUT_OF_MEMORY, CURLE_FILESIZE_EXCEEDED], .answerTooLarge, false,
            "the answer is too large", ""
        ),
        ([CURLE_URL_MALFORMAT], .forbiddenURL, false, "the URL is not valid", ""),
    ]
}
