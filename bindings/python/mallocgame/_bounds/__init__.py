"""What no plan and no map can beat, with proof. Users import it from mallocgame."""
