package import InletCore
internal import InletLinux
internal import InletTransfer

/// Fetches files from addresses that a person named; nothing secret is sent.
package final class WebFetch: Sendable {
    private let client: HTTPClient
    private let pool = BlockingPool(name: "fetch", threads: 1)

    package init(userAgent: String) { client = HTTPClient(threads: 1, userAgent: userAgent) }

    /// - Throws: `.forbiddenURL` and `.insecureURL` for an address that is neither https nor on this machine;
    ///   `.redirected`; otherwise as `Fetching`.
    package func fetch(_ address: String, _ order: FetchOrder) async throws(DeliveryError) -> Fetched {
        let url: HTTPURL
        do throws(TransferError) {
            url = try HTTPURL(address, rules: .configured(allowHTTP: false))
        } catch {
            throw DeliveryError(error)
        }
        return try await Fetching(client: client, pool: pool).run(order) { attempt async throws(DeliveryError) in
            HTTPRequest("GET", url, headers: attempt.headers)
        }
    }

    /// Ends its connections.
    package func shutdown() { client.shutdown() }
}
