internal import FoundationEssentials
package import InletCore
internal import InletLinux
package import InletTransfer

/// Fetches files from addresses that a person named. It sends no secrets, so redirects may be followed.
package final class WebFetch: Sendable {
    private let client: HTTPClient
    private let pool = BlockingPool(name: "fetch", threads: 1)

    /// The most redirects of one address.
    private static let mostHops = 5

    /// - Parameter proxy: `proxy:` of the configuration, where there is one; nil uses the environment.
    package init(userAgent: String, proxy: ProxySettings? = nil) {
        client = HTTPClient(threads: 1, userAgent: userAgent, proxies: ProxyRules(proxy))
    }

    /// - Throws: `.forbiddenURL` and `.insecureURL` for an address, or one that it redirects to, that is neither https
    ///   nor on this machine; `.redirected` for too many redirects; otherwise as `Fetching`.
    package func fetch(_ address: String, _ order: FetchOrder) async throws(DeliveryError) -> Downloaded {
        let named: HTTPURL
        do throws(TransferError) {
            named = try HTTPURL(address, rules: .configured(allowHTTP: false))
        } catch {
            guard error.code == .insecureURL else { throw DeliveryError(error) }
            // For display only.
            let shown = (try? HTTPURL(address, rules: .configured(allowHTTP: true)))?.redacted ?? "the address"
            throw DeliveryError(
                .giveUp, error.code, "\(shown) is not encrypted; only https is fetched, except from this machine")
        }
        let url = try await destination(of: named)
        return try await Fetching(client: client, pool: pool).run(order) { attempt async throws(DeliveryError) in
            HTTPRequest("GET", url, headers: attempt.headers)
        }
    }

    /// Follows redirects. An address that does not answer HEAD, as presigned ones do not, gets only the GET.
    private func destination(of named: HTTPURL) async throws(DeliveryError) -> HTTPURL {
        var url = named
        for _ in 0..<Self.mostHops {
            // The GET reports the fault.
            guard let response = try? await client.send(HTTPRequest("HEAD", url)),
                (300..<400).contains(response.status),
                let location = response.header("Location")
            else { return url }
            do throws(TransferError) {
                url = try HTTPURL(
                    HTTPURL.resolved(location, at: url.text), rules: .sentByServer(at: url, allowHTTP: false))
            } catch {
                throw DeliveryError(error)
            }
        }
        throw DeliveryError(
            .giveUp, .redirected, "\(named.redacted) leads on more than \(Self.mostHops) times; it may never end")
    }

    package func shutdown() { client.shutdown() }
}
