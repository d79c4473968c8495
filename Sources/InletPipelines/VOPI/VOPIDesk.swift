/// A VOPI server for the command line: the calls of a destination's API without its deliveries.
package final class VOPIDesk: Sendable {
    package let api: VOPIAPI

    package init(api: VOPIAPI) { self.api = api }
}
