/// Stub: the engine is built elsewhere.
package final class Throttle: Sendable {
    package init() {}
    package func set(_ rate: Int64?) {}
    package func set(_ rate: Int64?, for destination: String) {}
}
