/// Big transfers have a worker each; files of at most one part share a destination's connections.
package enum Lane: Int, Sendable, CaseIterable {
    case small = 0
    case big = 1
}
